// design: a kernel that pushes and a kernel that multiplies, side by side by programmatic dependent launch, 16 blocks each; volatile flags and __threadfence_system between the ranks
//
// Push lets Multiply start at once; Multiply needs nothing of it but the flags of the other ranks,
// and waits for it only before it ends, so that the next call finds both over. The gathered A
// exists twice: who pushes for call k + 2 has got all tiles of call k + 1.
constexpr int kBlocks = 16;

struct Board {
  unsigned int pushed[kBlocks], multiplied[kBlocks];  // own: calls that each block has made
  unsigned int ready[kMaxRanks * 32];                 // by tile of A: the last call that has come
};

__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ Half* Gathered(const Args& args, std::uint8_t* scratch, unsigned int call,
                          std::int64_t tile) {
  return reinterpret_cast<Half*>(scratch + 8192) +
         (call % 2 * args.world * args.tiles + tile) * 64 * 64 * args.depth;
}
__device__ unsigned int NextCall(unsigned int* calls) {
  const unsigned int call = *calls + 1;
  __syncthreads();
  if (threadIdx.x == 0) *calls = call;
  return call;
}

__global__ void __launch_bounds__(256) Push(Args args) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const unsigned int call = NextCall(&BoardOf(args.scratch)->pushed[blockIdx.x]);
  const std::int64_t runs = 64 * 8 * args.depth;
  for (std::int64_t i = blockIdx.x; i < (args.world - 1) * args.tiles; i += gridDim.x) {
    const int peer = (args.rank + 1 + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = args.rank * args.tiles + t;
    const uint4* from = reinterpret_cast<const uint4*>(A(args)) + t * runs;
    uint4* to = reinterpret_cast<uint4*>(Gathered(args, args.scratch_peers[peer], call, tile));
    for (std::int64_t n = threadIdx.x; n < runs; n += blockDim.x) to[n] = from[n];
    __syncthreads();
    if (threadIdx.x == 0) {
      volatile unsigned int* flag = &BoardOf(args.scratch_peers[peer])->ready[tile];
      __threadfence_system();
      *flag = call;
    }
  }
}

__global__ void __launch_bounds__(128) Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const unsigned int call = NextCall(&BoardOf(args.scratch)->multiplied[blockIdx.x]);
  const std::int64_t k = args.depth * 64;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int source = (args.rank + args.world - static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    const Half* rows = A(args) + t * 64 * k;
    if (source != args.rank) {
      const volatile unsigned int* flag = &BoardOf(args.scratch)->ready[tile];
      if (threadIdx.x == 0) {
        while (static_cast<int>(*flag - call) < 0) {
        }
        __threadfence_system();
      }
      __syncthreads();
      rows = Gathered(args, args.scratch, call, tile);
    }
    product.Clear();
    product.Add(rows, k, args.b, k, k);
    product.Store(args.c + tile * 64 * 32, 32);
  }
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Push<<<kBlocks, 256, 0, stream>>>(args);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(128);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, Multiply, args);
}

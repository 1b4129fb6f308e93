// A ring: each rank sends only to its right neighbour, its own tiles first, then what came from the
// left. Whoever multiplies a tile is told by the same flag that lets the forwarding half send it
// on.
struct Board {
  std::uint32_t calls[32];      // own: calls that each block has made
  std::uint32_t ready[8 * 64];  // by tile of A: the last call whose tile has come
};

__device__ inline Half* Gathered(std::uint8_t* scratch, const Args& args, std::uint32_t call,
                                 std::int64_t tile) {
  return reinterpret_cast<Half*>(scratch + 8192) +
         (call % 2 * args.world * args.tiles + tile) * 64 * 64 * args.depth;
}

__device__ inline void WaitFor(const std::uint32_t* flag, std::uint32_t call) {
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (seen < call);
}

// Threads 128 to 255.
__device__ void Forward(const Args& args, Board* mine, std::uint32_t call) {
  const int thread = threadIdx.x - 128, right = (args.rank + 1) % args.world;
  Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[right]);
  for (std::int64_t i = blockIdx.x; i < (args.world - 1) * args.tiles; i += gridDim.x) {
    const int source = (args.rank + args.world - static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    const Half* rows = A(args) + t * 64 * 64 * args.depth;
    if (source != args.rank) {
      if (thread == 0) WaitFor(&mine->ready[tile], call);
      asm volatile("barrier.sync 2, 128;" ::: "memory");
      rows = Gathered(args.scratch, args, call, tile);
    }
    const uint4* from = reinterpret_cast<const uint4*>(rows);
    uint4* to = reinterpret_cast<uint4*>(Gathered(args.scratch_peers[right], args, call, tile));
    for (std::int64_t n = thread; n < 64 * 8 * args.depth; n += 128) to[n] = from[n];
    asm volatile("barrier.sync 2, 128;" ::: "memory");
    if (thread == 0) {
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&theirs->ready[tile]), "r"(call)
                   : "memory");
    }
  }
}

__device__ void Multiply(const Args& args, Board* mine, std::uint32_t call) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * 64;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int source = (args.rank + args.world - static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    const Half* rows = A(args) + t * 64 * k;
    if (source != args.rank) {
      if (threadIdx.x == 0) WaitFor(&mine->ready[tile], call);
      allranks::TileProduct::Meet();
      rows = Gathered(args.scratch, args, call, tile);
    }
    product.Clear();
    product.Add(rows, k, args.b, k, k);
    product.Store(args.c + tile * 64 * 32, 32);
  }
}

// Two copies suffice as long as all ranks get something of call k + 1 from everybody before they
// send into the same copy again; what comes from the left has passed all others.
__global__ void __launch_bounds__(256) RingMultiply(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
  if (threadIdx.x < 128) {
    Multiply(args, mine, call);
  } else {
    Forward(args, mine, call);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  RingMultiply<<<32, 256, 0, stream>>>(args);
}

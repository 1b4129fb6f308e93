// Nothing is gathered: a rank copies its rows to its own scratch and says so, and the others
// multiply straight from there, across the link. Two copies by turns; no answers are needed,
// because a rank that says "call k + 1" has read everything of call k.
struct Board {
  std::uint32_t calls[32];      // own: calls that each block has made
  std::uint32_t ready[8 * 64];  // by tile of A: the last call whose tile can be read
};

__device__ inline Half* Shown(std::uint8_t* scratch, const Args& args, std::uint32_t call) {
  return reinterpret_cast<Half*>(scratch + 8192) + call % 2 * args.tiles * args.depth * 64 * 64;
}

__global__ void __launch_bounds__(128) PullMultiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
  const std::int64_t k = args.depth * 64, halves = 64 * k;
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    const uint4* from = reinterpret_cast<const uint4*>(A(args) + t * halves);
    uint4* to = reinterpret_cast<uint4*>(Shown(args.scratch, args, call) + t * halves);
    for (std::int64_t n = threadIdx.x; n < halves / 8; n += blockDim.x) to[n] = from[n];
    __syncthreads();
    // Each of the first threads tells one peer; each releases what all have copied.
    if (threadIdx.x < args.world && threadIdx.x != args.rank) {
      Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
      asm volatile(
          "st.release.sys.global.u32 [%0], %1;" ::"l"(&theirs->ready[args.rank * args.tiles + t]),
          "r"(call)
          : "memory");
    }
  }
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int source = (args.rank + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    const Half* rows = A(args) + t * halves;
    if (source != args.rank) {
      if (threadIdx.x == 0) {
        std::uint32_t seen;
        do {
          asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                       : "=r"(seen)
                       : "l"(&mine->ready[tile])
                       : "memory");
        } while (seen < call);
      }
      __syncthreads();
      rows = Shown(args.scratch_peers[source], args, call) + t * halves;
    }
    product.Clear();
    product.Add(rows, k, args.b, k, k);
    product.Store(args.c + tile * 64 * 32, 32);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  PullMultiply<<<32, 128, 0, stream>>>(args);
}

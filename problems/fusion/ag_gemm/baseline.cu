// One kernel gathers, the next one multiplies: nothing overlaps.
struct Board {
  std::uint32_t calls[32];      // own: calls that each block has made
  std::uint32_t ready[8 * 32];  // by rank and block: the last call whose share has come
};

__global__ void Gather(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
  const std::int64_t runs = args.tiles * args.depth * 64 * 64 / 8;
  const std::int64_t copy = call % 2 * args.world;
  const uint4* from = reinterpret_cast<const uint4*>(args.a);
  for (int peer = 0; peer < args.world; ++peer) {
    uint4* to =
        reinterpret_cast<uint4*>(args.scratch_peers[peer] + 8192) + (copy + args.rank) * runs;
    for (std::int64_t n = blockIdx.x * blockDim.x + threadIdx.x; n < runs;
         n += gridDim.x * blockDim.x) {
      to[n] = from[n];
    }
  }
  __syncthreads();
  __threadfence_system();
  // The next kernel starts when all blocks have seen all shares.
  for (int peer = threadIdx.x; peer < args.world; peer += blockDim.x) {
    Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[peer]);
    volatile std::uint32_t* flag = &theirs->ready[args.rank * 32 + blockIdx.x];
    *flag = call;
    volatile std::uint32_t* seen = &mine->ready[peer * 32 + blockIdx.x];
    while (*seen < call) {
    }
    __threadfence_system();
  }
}

__global__ void Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::uint32_t call = reinterpret_cast<Board*>(args.scratch)->calls[0];
  const std::int64_t k = args.depth * 64, tiles = args.world * args.tiles;
  const Half* rows = reinterpret_cast<const Half*>(args.scratch + 8192) + call % 2 * tiles * 64 * k;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    product.Clear();
    product.Add(rows + tile * 64 * k, k, args.b, k, k);
    product.Store(args.c + tile * 64 * 32, 32);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Gather<<<32, 256, 0, stream>>>(args);
  Multiply<<<32, 128, 0, stream>>>(args);
}

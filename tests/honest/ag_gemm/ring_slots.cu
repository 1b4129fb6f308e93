// design: ring of ranks with bounded slots: each block is a channel to the right neighbour with four slots of one tile; a count of messages goes right, a count of freed slots comes back
//
// A message is a tile. Threads 128 to 255 send: the own tile first, then what came from the left.
// Threads 0 to 127 multiply what is at hand meanwhile. A slot is free for the left neighbour when
// both halves are through with it. Counts only grow, over all calls.
constexpr int kMaxChannels = 32, kThreads = 256, kSlots = 4;

struct Board {
  std::uint32_t calls[kMaxChannels];  // own: calls that each block has made
  std::uint32_t come[kMaxChannels];   // messages from the left neighbour, ever
  std::uint32_t freed[kMaxChannels];  // messages that the right neighbour is through with, ever
};

__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ Half* SlotOf(const Args& args, std::uint8_t* scratch, std::uint32_t message) {
  return reinterpret_cast<Half*>(scratch + 8192) +
         (blockIdx.x * kSlots + message % kSlots) * 64 * 64 * args.depth;
}
__device__ void WaitFor(const std::uint32_t* count, std::uint32_t target) {
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
  } while (static_cast<std::int32_t>(seen - target) < 0);
}
__device__ void Tell(std::uint32_t* count, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(count), "r"(value) : "memory");
}

__global__ void __launch_bounds__(kThreads) RingMultiply(Args args) {
  __shared__ allranks::TileStage stage;
  const int world = args.world, right = (args.rank + 1) % world;
  Board* mine = BoardOf(args.scratch);
  Board* at_right = BoardOf(args.scratch_peers[right]);
  Board* at_left = BoardOf(args.scratch_peers[(args.rank + world - 1) % world]);
  const bool sends = threadIdx.x >= 128;
  const std::uint32_t call = mine->calls[blockIdx.x];
  const std::int64_t k = args.depth * 64;
  allranks::TileProduct product(stage);

  // As many messages come in every call as go.
  const auto tiles =
      static_cast<std::uint32_t>((args.tiles - blockIdx.x + gridDim.x - 1) / gridDim.x);
  std::uint32_t message = call * tiles * (world - 1);
  for (std::int64_t t = blockIdx.x; t < args.tiles; t += gridDim.x) {
    const Half* rows = A(args) + t * 64 * k;
    for (int step = 0; step < world; ++step) {
      // `rows` is the tile of this source; it goes on unless the right neighbour is its home.
      const int source = (args.rank + world - step) % world;
      if (sends && step < world - 1) {
        const int thread = threadIdx.x - 128;
        if (thread == 0) WaitFor(&mine->freed[blockIdx.x], message + 1 - kSlots);
        asm volatile("barrier.sync 2, 128;" ::: "memory");
        const uint4* from = reinterpret_cast<const uint4*>(rows);
        uint4* to = reinterpret_cast<uint4*>(SlotOf(args, args.scratch_peers[right], message));
        for (std::int64_t n = thread; n < 64 * 8 * args.depth; n += 128) to[n] = from[n];
        asm volatile("barrier.sync 2, 128;" ::: "memory");
        if (thread == 0) Tell(&at_right->come[blockIdx.x], message + 1);
      }
      if (!sends) {
        product.Clear();
        product.Add(rows, k, args.b, k, k);
        product.Store(args.c + (source * args.tiles + t) * 64 * 32, 32);
      }
      __syncthreads();
      if (threadIdx.x == 0) {
        // Step s >= 1 used up the message that came in step s - 1.
        if (step > 0) Tell(&at_left->freed[blockIdx.x], message);
        if (step < world - 1) WaitFor(&mine->come[blockIdx.x], message + 1);
      }
      __syncthreads();
      if (step < world - 1) rows = SlotOf(args, args.scratch, message++);
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call + 1;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t channels = args.tiles < kMaxChannels ? args.tiles : kMaxChannels;
  RingMultiply<<<static_cast<int>(channels), kThreads, 0, stream>>>(args);
}

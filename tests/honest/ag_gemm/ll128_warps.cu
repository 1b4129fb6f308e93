// design: LL128 with three kinds of warps per block: two send lines, two receive lines into a ring of pieces in shared memory, four multiply; bar.arrive and bar.sync between the latter
//
// A piece of 64 x 64 halves is 69 lines of 120 bytes and a flag of 8, the number of the call. Lines
// exist once at each receiver; a credit per tile says that they have been read.
constexpr int kBlocks = 32, kThreads = 256;
constexpr int kSenders = 128, kReceivers = 192;  // first thread of each
constexpr int kPerLine = 15, kPieceWords = 64 * 64 * 2 / 8;  // words of 64 bits
constexpr int kLines = (kPieceWords + kPerLine - 1) / kPerLine;
constexpr int kFull = 3, kEmpty = 5;  // barriers, two each; 192 threads meet there

struct Board {
  std::uint32_t calls[kBlocks];          // own: calls that each block has made
  std::uint32_t credits[kMaxRanks][32];  // by reader and own tile: the call that it has read
};

__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ std::uint64_t* LinesOf(const Args& args, std::uint8_t* scratch, std::int64_t tile,
                                  std::int64_t piece) {
  return reinterpret_cast<std::uint64_t*>(scratch + 8192) +
         (tile * args.depth + piece) * kLines * 16;
}
__device__ void BarSync(int barrier) {
  asm volatile("barrier.sync %0, 192;" ::"r"(barrier) : "memory");
}
__device__ void BarArrive(int barrier) {
  asm volatile("barrier.arrive %0, 192;" ::"r"(barrier) : "memory");
}

// Own rows first, then those of the left neighbour, ...
struct Order {
  int source;
  std::int64_t t, tile;
  __device__ Order(const Args& args, std::int64_t i)
      : source((args.rank + args.world - static_cast<int>(i / args.tiles)) % args.world),
        t(i % args.tiles),
        tile(source * args.tiles + t) {}
};

__device__ void Send(const Args& args, std::uint64_t call) {
  const int thread = threadIdx.x - kSenders, in_line = thread % 8;
  const std::int64_t row_words = args.depth * 16;
  for (std::int64_t i = blockIdx.x; i < (args.world - 1) * args.tiles; i += gridDim.x) {
    const int peer = (args.rank + 1 + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles;
    if (thread == 0) {
      const std::uint32_t* credit = &BoardOf(args.scratch)->credits[peer][t];
      std::uint32_t seen;
      do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(credit) : "memory");
      } while (static_cast<std::int32_t>(seen + 1 - static_cast<std::uint32_t>(call)) < 0);
    }
    asm volatile("barrier.sync 2, 64;" ::: "memory");
    const auto* from = reinterpret_cast<const std::uint64_t*>(A(args)) + t * 64 * row_words;
    for (std::int64_t p = 0; p < args.depth; ++p) {
      std::uint64_t* to =
          LinesOf(args, args.scratch_peers[peer], args.rank * args.tiles + t, p);
      for (int first = thread / 32 * 4; first < kLines; first += 8) {
        const int line = first + thread % 32 / 8;
        std::uint64_t words[2] = {0, 0};
        for (int j = 0; j < 2; ++j) {
          const int at = line * kPerLine + in_line * 2 + j;
          if (at < kPieceWords && in_line * 2 + j < kPerLine)
            words[j] = from[at / 16 * row_words + p * 16 + at % 16];
        }
        if (in_line == 7) words[1] = call;
        __syncwarp();  // the lanes of a line store with one instruction
        if (line < kLines) {
          asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(
                           to + line * 16 + in_line * 2),
                       "l"(words[0]), "l"(words[1])
                       : "memory");
        }
      }
    }
  }
}

__device__ void Receive(const Args& args, std::uint64_t call, std::uint64_t (*ring)[kPieceWords]) {
  const int thread = threadIdx.x - kReceivers, in_line = thread % 8;
  std::uint32_t turn = 0;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const Order order(args, i);
    if (order.source == args.rank) continue;
    for (std::int64_t p = 0; p < args.depth; ++p, ++turn) {
      const std::uint64_t* from = LinesOf(args, args.scratch, order.tile, p);
      std::uint64_t* to = ring[turn % 2];
      if (turn >= 2) BarSync(kEmpty + turn % 2);
      for (int first = thread / 32 * 4; first < kLines; first += 8) {
        const int line = first + thread % 32 / 8, at = line * kPerLine + in_line * 2;
        std::uint64_t low = 0, high = 0;
        bool here;
        do {
          __syncwarp();
          here = true;
          if (line < kLines) {
            asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                         : "=l"(low), "=l"(high)
                         : "l"(from + line * 16 + in_line * 2)
                         : "memory");
            here = in_line != 7 || high == call;
          }
        } while (!__all_sync(~0u, here));
        if (line < kLines && at < kPieceWords) to[at] = low;
        if (line < kLines && in_line != 7 && at + 1 < kPieceWords) to[at + 1] = high;
      }
      BarArrive(kFull + turn % 2);
    }
    // Both warps have read all lines of the tile.
    asm volatile("barrier.sync 7, 64;" ::: "memory");
    if (thread == 0) {
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(
                       &BoardOf(args.scratch_peers[order.source])->credits[args.rank][order.t]),
                   "r"(static_cast<std::uint32_t>(call))
                   : "memory");
    }
  }
}

__device__ std::int64_t PiecesToCome(const Args& args) {
  std::int64_t pieces = 0;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x)
    if (Order(args, i).source != args.rank) pieces += args.depth;
  return pieces;
}

__device__ void Multiply(const Args& args, std::uint64_t (*ring)[kPieceWords]) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * 64, all = PiecesToCome(args);
  std::uint32_t turn = 0;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const Order order(args, i);
    product.Clear();
    if (order.source == args.rank) {
      product.Add(A(args) + order.t * 64 * k, k, args.b, k, k);
    } else {
      for (std::int64_t p = 0; p < args.depth; ++p, ++turn) {
        BarSync(kFull + turn % 2);
        product.Add(ring[turn % 2], 64, reinterpret_cast<const Half*>(args.b) + p * 64, k, 64);
        // Arrive only where a receiver is going to wait.
        if (turn + 2 < all) BarArrive(kEmpty + turn % 2);
      }
    }
    product.Store(args.c + order.tile * 64 * 32, 32);
  }
}

__global__ void __launch_bounds__(kThreads) GatherMultiply(Args args) {
  __shared__ __align__(16) std::uint64_t ring[2][kPieceWords];
  std::uint32_t* calls = &BoardOf(args.scratch)->calls[blockIdx.x];
  const std::uint32_t call = *calls + 1;
  __syncthreads();
  if (threadIdx.x == 0) *calls = call;
  if (threadIdx.x < kSenders) {
    Multiply(args, ring);
  } else if (threadIdx.x < kReceivers) {
    Send(args, call);
  } else {
    Receive(args, call, ring);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  GatherMultiply<<<kBlocks, kThreads, 0, stream>>>(args);
}

// design: LL: halves travel two by two beside the call's number in 64-bit words; receivers unpack pieces into shared memory as they come and give the tile back by a credit
//
// Threads 128 to 255 send, threads 0 to 127 receive and multiply. The words of a tile exist once at
// each receiver, in the order (piece of the depth, row, pair). A tile is overwritten when its
// reader has said that it has read the call before.
constexpr int kBlocks = 32, kThreads = 256, kHalf = 128;
constexpr int kPieceWords = 64 * 64 / 2;

struct Board {
  std::uint32_t calls[kBlocks];            // own: calls that each block has made
  std::uint32_t credits[kMaxRanks][32];    // by reader and own tile: the call that it has read
};

__device__ Board* BoardOf(std::uint8_t* scratch) { return reinterpret_cast<Board*>(scratch); }
__device__ std::uint64_t* WordsOf(const Args& args, std::uint8_t* scratch, std::int64_t tile) {
  return reinterpret_cast<std::uint64_t*>(scratch + 8192) + tile * args.depth * kPieceWords;
}

__device__ void Send(const Args& args, std::uint32_t call) {
  const int thread = threadIdx.x - kHalf;
  const std::int64_t row_words = args.depth * 32;  // of 32 bits, in `a`
  const std::uint64_t tag = std::uint64_t{call} << 32;
  for (std::int64_t i = blockIdx.x; i < (args.world - 1) * args.tiles; i += gridDim.x) {
    const int peer = (args.rank + 1 + static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles;
    if (thread == 0) {
      const std::uint32_t* credit = &BoardOf(args.scratch)->credits[peer][t];
      std::uint32_t seen;
      do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(credit) : "memory");
      } while (static_cast<std::int32_t>(seen - (call - 1)) < 0);
    }
    asm volatile("barrier.sync 2, 128;" ::: "memory");
    const auto* from = reinterpret_cast<const std::uint32_t*>(A(args)) + t * 64 * row_words;
    std::uint64_t* to = WordsOf(args, args.scratch_peers[peer], args.rank * args.tiles + t);
    for (std::int64_t n = thread; n < args.depth * kPieceWords; n += kHalf) {
      const std::int64_t piece = n / kPieceWords, row = n % kPieceWords / 32, pair = n % 32;
      const std::uint64_t word = tag | from[row * row_words + piece * 32 + pair];
      asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to + n), "l"(word) : "memory");
    }
  }
}

__device__ void Multiply(const Args& args, std::uint32_t call) {
  constexpr int kEach = kPieceWords / kHalf;
  __shared__ allranks::TileStage stage;
  __shared__ __align__(16) std::uint32_t piece[kPieceWords];
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * 64;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles; i += gridDim.x) {
    const int source = (args.rank + args.world - static_cast<int>(i / args.tiles)) % args.world;
    const std::int64_t t = i % args.tiles, tile = source * args.tiles + t;
    product.Clear();
    if (source == args.rank) {
      product.Add(A(args) + t * 64 * k, k, args.b, k, k);
    } else {
      const std::uint64_t* words = WordsOf(args, args.scratch, tile);
      for (std::int64_t p = 0; p < args.depth; ++p) {
        for (int n = 0; n < kEach; ++n) {
          const int at = n * kHalf + threadIdx.x;
          std::uint64_t word;
          do {
            asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
                         : "=l"(word)
                         : "l"(words + p * kPieceWords + at)
                         : "memory");
          } while (word >> 32 != call);
          piece[at] = static_cast<std::uint32_t>(word);
        }
        // Add meets once after all have fetched their share, so the piece may be filled again.
        allranks::TileProduct::Meet();
        product.Add(piece, 64, reinterpret_cast<const Half*>(args.b) + p * 64, k, 64);
      }
      if (threadIdx.x == 0) {
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(
                         &BoardOf(args.scratch_peers[source])->credits[args.rank][t]),
                     "r"(call)
                     : "memory");
      }
    }
    product.Store(args.c + tile * 64 * 32, 32);
  }
}

__global__ void __launch_bounds__(kThreads) GatherMultiply(Args args) {
  std::uint32_t* calls = &BoardOf(args.scratch)->calls[blockIdx.x];
  const std::uint32_t call = *calls + 1;
  __syncthreads();
  if (threadIdx.x == 0) *calls = call;
  if (threadIdx.x < kHalf) {
    Multiply(args, call);
  } else {
    Send(args, call);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  GatherMultiply<<<kBlocks, kThreads, 0, stream>>>(args);
}

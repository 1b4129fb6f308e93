// design: LL128: a warp stores lines of 120 bytes of data and 8 of flag into the receiver's scratch; the lines exist once and are lent by credits
//
// Eight lanes store a line with one instruction, 16 bytes each, and eight lanes read it so; the
// last 8 bytes hold the number of the call. More than PTX promises, and what NVLink delivers.
constexpr int kParts = 4;
constexpr int kThreads = 256;
constexpr int kPerLine = 15;  // data of a line, in words of 64 bits
constexpr std::int64_t kBoardBytes = 8192;  // the rest of the 64 KiB rounds up the segments

struct Board {
  std::uint64_t calls[kMaxRanks * kParts];   // own, by CTA: calls that have ended
  std::uint64_t credits[kMaxRanks][kParts];  // by destination and part: the call it has read
  std::uint64_t heads[2][kMaxRanks];         // by source: call, rows that it sends
};
static_assert(sizeof(Board) <= kBoardBytes, "lines come behind it");

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ std::int64_t LinesOf(const Args& args, std::int64_t rows) {
  return (rows * args.quads * 2 + kPerLine - 1) / kPerLine;
}
__device__ std::uint64_t* SegmentOf(const Args& args, int rank, int source) {
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[rank] + kBoardBytes) +
         source * LinesOf(args, args.rows) * 16;
}

__global__ void __launch_bounds__(kThreads) Exchange(Args args) {
  __shared__ std::int64_t counts[kMaxRanks];
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  const int warp = threadIdx.x / 32, in_line = threadIdx.x % 8, line_of_warp = threadIdx.x % 32 / 8;
  constexpr int kStep = kThreads / 8;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;

  if (threadIdx.x < kParts) {
    while (LoadAcquireSys(&mine->credits[peer][threadIdx.x]) + 1 < call) {
    }
  }
  __syncthreads();
  std::int64_t first = 0;
  for (int i = 0; i < peer; ++i) first += args.counts[i];
  const std::int64_t count = args.counts[peer];
  if (part == 0 && threadIdx.x == 0)
    StoreRelaxedSys(&BoardOf(args, peer)->heads[call % 2][rank], call << 32 | count);
  {
    const auto* from = reinterpret_cast<const std::uint64_t*>(args.in) + first * args.quads * 2;
    std::uint64_t* to = SegmentOf(args, peer, rank);
    const std::int64_t words = count * args.quads * 2, lines = LinesOf(args, count);
    const std::int64_t end = lines * (part + 1) / kParts;
    for (std::int64_t base = lines * part / kParts + warp * 4; base < end; base += kStep) {
      const std::int64_t line = base + line_of_warp, at = line * kPerLine + in_line * 2;
      const std::uint64_t low = at < words ? from[at] : 0;
      const std::uint64_t high = in_line == 7 ? call : at + 1 < words ? from[at + 1] : 0;
      __syncwarp();  // the lanes of a line store with one instruction
      if (line < end) {
        asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(
                         to + line * 16 + in_line * 2),
                     "l"(low), "l"(high)
                     : "memory");
      }
    }
  }

  if (threadIdx.x < args.world) {
    std::uint64_t value;
    do {
      value = LoadRelaxedSys(&mine->heads[call % 2][threadIdx.x]);
    } while (value >> 32 != call);
    counts[threadIdx.x] = static_cast<std::uint32_t>(value);
  }
  __syncthreads();
  std::int64_t place = 0;
  for (int i = 0; i < peer; ++i) place += counts[i];
  const std::int64_t comes = counts[peer], fit = max(min(comes, args.room - place), 0l);
  {
    const std::uint64_t* from = SegmentOf(args, rank, peer);
    auto* to = reinterpret_cast<std::uint64_t*>(args.out) + place * args.quads * 2;
    const std::int64_t words = fit * args.quads * 2, lines = LinesOf(args, fit);
    const std::int64_t end = lines * (part + 1) / kParts;
    // A warp keeps together: its four lines are read until all of them are there.
    for (std::int64_t base = lines * part / kParts + warp * 4; base < end; base += kStep) {
      const std::int64_t line = base + line_of_warp;
      std::uint64_t low = 0, high = 0;
      bool here;
      do {
        __syncwarp();  // and read it with one
        here = true;
        if (line < end) {
          asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                       : "=l"(low), "=l"(high)
                       : "l"(from + line * 16 + in_line * 2)
                       : "memory");
          here = in_line != 7 || high == call;
        }
      } while (!__all_sync(~0u, here));
      const std::int64_t at = line * kPerLine + in_line * 2;
      if (line < end && at < words) to[at] = low;
      if (line < end && in_line != 7 && at + 1 < words) to[at + 1] = high;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&BoardOf(args, peer)->credits[rank][part], call);
    if (part == 0) args.arrived[peer] = static_cast<std::int32_t>(fit);
    mine->calls[blockIdx.x] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Exchange<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

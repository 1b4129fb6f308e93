// design: LL: every word of 32 bits travels with the call's number in one 64-bit store into the receiver's scratch; one buffer, guarded by credits
//
// A word is believed when its upper half is the number of the call, so neither flags nor fences
// follow the data, and nobody touches a peer's tensors. The buffer exists once: whoever sends in
// call k has a credit, "I have read call k - 1", of every CTA that reads what he wrote.
constexpr int kParts = 4;
constexpr int kThreads = 256;
constexpr std::int64_t kBoardBytes = 65536;

struct Board {
  std::uint64_t calls[kMaxRanks * kParts];    // own, by CTA: calls that have ended
  std::uint64_t credits[kMaxRanks][kParts];   // by destination and part: the call it has read
  std::uint64_t heads[2][kMaxRanks];          // by source: call, rows that it sends
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ std::uint64_t* WordsOf(const Args& args, int rank, int source) {
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[rank] + kBoardBytes) +
         source * args.rows * args.quads * 4;
}

__global__ void __launch_bounds__(kThreads) Exchange(Args args) {
  __shared__ std::int64_t counts[kMaxRanks];
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  const std::int64_t row_words = args.quads * 4;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1, tag = call << 32;

  // The slices of the call before were others: all parts of the peer must have read.
  if (threadIdx.x < kParts) {
    while (LoadAcquireSys(&mine->credits[peer][threadIdx.x]) + 1 < call) {
    }
  }
  __syncthreads();
  std::int64_t first = 0;
  for (int i = 0; i < peer; ++i) first += args.counts[i];
  const std::int64_t count = args.counts[peer];
  // Two places by turns, since CTAs of other sources read it as well: a credit of call k + 1 says
  // that all of call k is over there.
  if (part == 0 && threadIdx.x == 0)
    StoreRelaxedSys(&BoardOf(args, peer)->heads[call % 2][rank], tag | count);
  const std::uint32_t* from = args.in + first * row_words;
  std::uint64_t* to = WordsOf(args, peer, rank);
  for (std::int64_t i = count * part / kParts * row_words + threadIdx.x,
                    end = count * (part + 1) / kParts * row_words;
       i < end; i += kThreads)
    StoreRelaxedSys(to + i, tag | from[i]);

  // The same part of what the peer sends to this rank.
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
  const std::uint64_t* words = WordsOf(args, rank, peer);
  std::uint32_t* out = args.out + place * row_words;
  for (std::int64_t i = comes * part / kParts * row_words + threadIdx.x,
                    end = min(comes * (part + 1) / kParts, fit) * row_words;
       i < end; i += kThreads) {
    std::uint64_t value;
    do {
      value = LoadRelaxedSys(words + i);
    } while (value >> 32 != call);
    out[i] = static_cast<std::uint32_t>(value);
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

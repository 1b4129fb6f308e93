// Staged: rows go into symmetric memory of the destination, where each source has room of its own,
// twice because calls overlap. Nobody has to wait before sending. A second kernel packs what came.
constexpr int kParts = 4;
constexpr int kThreads = 256;
constexpr std::int64_t kBoardBytes = 65536;

struct Board {
  std::uint64_t calls[kMaxRanks * kParts];   // by CTA of this rank: calls it has finished
  std::uint64_t here[2][kMaxRanks][kParts];  // by source and part: call, rows of all parts
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ uint4* SegmentOf(const Args& args, int rank, std::uint64_t call, int source) {
  return reinterpret_cast<uint4*>(args.scratch_peers[rank] + kBoardBytes) +
         (call % 2 * args.world + source) * args.rows * args.quads;
}
__device__ void Copy(uint4* to, const uint4* from, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) to[i] = from[i];
}

__global__ void __launch_bounds__(kThreads) Send(Args args) {
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts;
  const std::uint64_t call = BoardOf(args, args.rank)->calls[blockIdx.x] + 1;
  std::int64_t first = 0;
  for (int i = 0; i < peer; ++i) first += args.counts[i];
  const std::int64_t count = args.counts[peer];
  Copy(SegmentOf(args, peer, call, args.rank),
       reinterpret_cast<const uint4*>(args.in) + first * args.quads,
       count * part / kParts * args.quads, count * (part + 1) / kParts * args.quads);
  __syncthreads();
  if (threadIdx.x == 0)
    StoreReleaseSys(&BoardOf(args, peer)->here[call % 2][args.rank][part], call << 32 | count);
}

__global__ void __launch_bounds__(kThreads) Pack(Args args) {
  __shared__ std::int64_t counts[kMaxRanks];
  const int source = blockIdx.x / kParts, part = blockIdx.x % kParts;
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  if (threadIdx.x < args.world) {
    std::uint64_t value;
    do {
      value = LoadAcquireSys(&mine->here[call % 2][threadIdx.x][part]);
    } while (value >> 32 != call);
    counts[threadIdx.x] = static_cast<std::uint32_t>(value);
  }
  __syncthreads();
  std::int64_t to = 0;
  for (int i = 0; i < source; ++i) to += counts[i];
  const std::int64_t count = counts[source], fit = max(min(count, args.room - to), 0l);
  Copy(reinterpret_cast<uint4*>(args.out) + to * args.quads,
       SegmentOf(args, args.rank, call, source), min(count * part / kParts, fit) * args.quads,
       min(count * (part + 1) / kParts, fit) * args.quads);
  if (threadIdx.x == 0) {
    if (part == 0) args.arrived[source] = static_cast<std::int32_t>(fit);
    mine->calls[blockIdx.x] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Send<<<args.world * kParts, kThreads, 0, stream>>>(args);
  Pack<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

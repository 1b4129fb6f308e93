// Pull: a peer's counts say that its `in` may be read. Every CTA takes a slice of what each source
// has for this rank, beginning with another source than its neighbours, and tells the sources when
// it has read; a rank leaves when all its readers have.
constexpr int kCtas = 16;
constexpr int kThreads = 512;

struct Board {
  std::uint64_t calls[kCtas];                    // by CTA of this rank: calls it has finished
  std::uint64_t read[kMaxRanks][kCtas];          // by reader and its CTA: the call that it has read
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

__global__ void __launch_bounds__(kThreads) Pull(Args args) {
  __shared__ std::int64_t counts[kMaxRanks][kMaxRanks];
  const int rank = args.rank, world = args.world;
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  if (a < world && b < world) {
    if (blockIdx.x == 0)
      StoreReleaseSys(&BoardOf(args, a)->table[call % 2][rank][b], call << 32 | args.counts[b]);
    std::uint64_t value;
    do {
      value = LoadAcquireSys(&mine->table[call % 2][a][b]);
    } while (value >> 32 != call);
    counts[a][b] = static_cast<std::uint32_t>(value);
  }
  __syncthreads();
  for (int step = 0; step < world; ++step) {
    const int source = (rank + blockIdx.x + step) % world;
    std::int64_t from = 0, to = 0;
    for (int i = 0; i < rank; ++i) from += counts[source][i];
    for (int i = 0; i < source; ++i) to += counts[i][rank];
    const std::int64_t rows = min(counts[source][rank], args.room - to);
    const uint4* in = reinterpret_cast<const uint4*>(args.in_peers[source]) + from * args.quads;
    uint4* out = reinterpret_cast<uint4*>(args.out) + to * args.quads;
    for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < rows * args.quads;
         i += kCtas * kThreads)
      out[i] = in[i];
    if (blockIdx.x == 0 && threadIdx.x == 0)
      args.arrived[source] = static_cast<std::int32_t>(max(rows, 0l));
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&BoardOf(args, threadIdx.x)->read[rank][blockIdx.x], call);
    while (LoadAcquireSys(&mine->read[threadIdx.x][blockIdx.x]) < call) {
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Pull<<<kCtas, kThreads, 0, stream>>>(args);
}

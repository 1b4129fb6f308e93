// expect: race
// Rows are put into the peer's `out` by all threads and followed by a signal, an atomicAdd_system
// by thread 0. In front of it stands __threadfence(), of gpu scope: together they are no release at
// system scope, and the peer leaves the call without being ordered behind the rows.

constexpr int kThreads = 256;

struct Window {
  std::uint64_t calls[kMaxRanks];                // by CTA of this rank: calls it has finished
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
  unsigned long long signal[kMaxRanks];          // by source: puts that have come
};

__device__ Window* WindowOf(const Args& args, int rank) {
  return reinterpret_cast<Window*>(args.scratch_peers[rank]);
}

// A CTA per peer.
__global__ void __launch_bounds__(kThreads) PutAll(Args args) {
  __shared__ std::int64_t table[kMaxRanks][kMaxRanks];
  const int rank = args.rank, world = args.world, peer = blockIdx.x;
  Window* mine = WindowOf(args, rank);
  const std::uint64_t call = mine->calls[peer] + 1;
  if (threadIdx.x < world) {
    StoreReleaseSys(&WindowOf(args, peer)->table[call % 2][rank][threadIdx.x],
                    call << 32 | args.counts[threadIdx.x]);
  }
  if (threadIdx.x < kMaxRanks * kMaxRanks) {
    const int s = threadIdx.x / kMaxRanks, d = threadIdx.x % kMaxRanks;
    if (s < world && d < world) {
      std::uint64_t value;
      do {
        value = LoadAcquireSys(&mine->table[call % 2][s][d]);
      } while (value >> 32 != call);
      table[s][d] = static_cast<std::uint32_t>(value);
    }
  }
  __syncthreads();

  std::int64_t from = 0, to = 0;
  for (int i = 0; i < peer; ++i) from += table[rank][i];
  for (int i = 0; i < rank; ++i) to += table[i][peer];
  const std::int64_t rows = max(min(table[rank][peer], args.room - to), 0l);
  const uint4* in = reinterpret_cast<const uint4*>(args.in) + from * args.quads;
  uint4* out = reinterpret_cast<uint4*>(args.out_peers[peer]) + to * args.quads;
  for (std::int64_t i = threadIdx.x; i < rows * args.quads; i += kThreads) out[i] = in[i];

  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd_system(&WindowOf(args, peer)->signal[rank], 1ull);
    while (LoadAcquireSys(reinterpret_cast<std::uint64_t*>(&mine->signal[peer])) < call) {
    }
    if (peer == rank) {
      std::int64_t left = args.room;
      for (int i = 0; i < world; ++i) {
        const std::int64_t here = min(table[i][rank], left);
        args.arrived[i] = static_cast<std::int32_t>(here);
        left -= here;
      }
    }
    mine->calls[peer] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  PutAll<<<args.world, kThreads, 0, stream>>>(args);
}

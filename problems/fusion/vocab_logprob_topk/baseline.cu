// Kernel by kernel: the best words of the own shard, a meeting, the best words of all shards by one
// thread per row, and a meeting before they are overwritten.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kBest = 32, kData = 256;

// Larger for the word that comes first.
__device__ std::uint64_t Key(float x, std::int64_t word) {
  return static_cast<std::uint64_t>(x + 16384) << 32 | (65535 - word);
}
__device__ float Logit(std::uint64_t key) { return static_cast<float>(key >> 32) - 16384; }
__device__ std::uint64_t* Best(const Args& args, int at, int of, std::int64_t row) {
  std::uint64_t* keys = reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + kData);
  return keys + (row * kMaxRanks + of) * kBest;
}

// A word's place is the number of words ahead of it.
__global__ void Own(Args args) {
  const std::int64_t vocab = args.vocab, begin = args.rank * vocab;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    const float* x = args.logits + row * vocab;
    for (std::int64_t j = threadIdx.x; j < vocab; j += blockDim.x) {
      const std::uint64_t key = Key(x[j], begin + j);
      int place = 0;
      for (std::int64_t i = 0; i < vocab; ++i) place += Key(x[i], begin + i) > key;
      if (place >= args.k) continue;
      for (int r = 0; r < args.world; ++r) Best(args, r, args.rank, row)[place] = key;
    }
  }
}

__global__ void All(Args args) {
  const std::int64_t each = args.k < args.vocab ? args.k : args.vocab;
  for (std::int64_t row = threadIdx.x; row < args.rows; row += blockDim.x) {
    std::uint64_t best[kBest];
    float total = 0, mass = 0, chosen = -INFINITY;
    int at[kMaxRanks] = {0}, top = 0, kept = 0;
    for (; top < args.k; ++top) {
      int from = -1;
      for (int r = 0; r < args.world; ++r) {
        const std::uint64_t head = at[r] < each ? Best(args, args.rank, r, row)[at[r]] : 0;
        if (head == 0 || (from >= 0 && head < best[top])) continue;
        best[top] = head;
        from = r;
      }
      if (from < 0 || Logit(best[top]) < Logit(best[0]) - 12) break;
      ++at[from];
      total += exp2f(Logit(best[top]) - Logit(best[0]));
    }
    for (; kept < top && 8 * mass <= args.top_p[row] * total; ++kept) {
      mass += exp2f(Logit(best[kept]) - Logit(best[0]));
      if (65535 - (best[kept] & 65535) == args.token[row]) chosen = Logit(best[kept]);
    }
    args.lse[row] = Logit(best[0]) + log2f(mass);
    args.logprob[row] = chosen - args.lse[row];
    args.kept[row] = kept;
  }
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Own<<<kBlocks, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  All<<<1, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

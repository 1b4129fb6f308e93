// 32 rows at a time, kernel by kernel: each rank pushes its best words, a meeting, one thread per row
// filters them all and a block writes the gradient, and a meeting before candidates are overwritten.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kRows = 32, kBest = 32, kData = 256;

// Larger for the word that comes first.
__device__ std::uint64_t Key(float x, std::int64_t word) {
  return static_cast<std::uint64_t>(x + 16384) << 32 | (65535 - word);
}
__device__ float Logit(std::uint64_t key) { return static_cast<float>(key >> 32) - 16384; }
__device__ std::uint64_t* Best(const Args& args, int at, int of) {
  std::uint64_t* keys = reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + kData);
  return keys + (blockIdx.x * kMaxRanks + of) * kBest;
}

// A word's place is the number of words ahead of it.
__global__ void Own(Args args, std::int64_t first) {
  const std::int64_t vocab = args.vocab, begin = args.rank * vocab;
  const float* x = args.logits + (first + blockIdx.x) * vocab;
  for (std::int64_t j = threadIdx.x; j < vocab; j += blockDim.x) {
    const std::uint64_t key = Key(x[j], begin + j);
    int place = 0;
    for (std::int64_t i = 0; i < vocab; ++i) place += Key(x[i], begin + i) > key;
    if (place >= args.k) continue;
    for (int r = 0; r < args.world; ++r) Best(args, r, args.rank)[place] = key;
  }
}

__global__ void All(Args args, std::int64_t first) {
  __shared__ std::uint64_t best[kBest];
  __shared__ int last;
  __shared__ float mass;
  const std::int64_t vocab = args.vocab, begin = args.rank * vocab, row = first + blockIdx.x;
  if (threadIdx.x == 0) {
    float total = 0, sum = 0;
    int at[kMaxRanks] = {0}, top = 0, kept = 0;
    for (; top < args.k; ++top) {
      int from = -1;
      for (int r = 0; r < args.world; ++r) {
        const std::uint64_t head = at[r] < min(args.k, vocab) ? Best(args, args.rank, r)[at[r]] : 0;
        if (head == 0 || (from >= 0 && head < best[top])) continue;
        best[top] = head;
        from = r;
      }
      if (from < 0 || Logit(best[top]) < Logit(best[0]) - 12) break;
      ++at[from];
      total += exp2f(Logit(best[top]) - Logit(best[0]));
    }
    for (; kept < top && 8 * sum <= args.top_p[row] * total; ++kept) {
      sum += exp2f(Logit(best[kept]) - Logit(best[0]));
    }
    mass = sum;
    last = kept - 1;
  }
  __syncthreads();
  for (std::int64_t j = threadIdx.x; j < vocab; j += blockDim.x) {
    const float x = args.logits[row * vocab + j], p = exp2f(x - Logit(best[0])) / mass;
    const float value = args.upstream[row] * ((args.token[row] == begin + j) - p);
    args.grad[row * vocab + j] = Key(x, begin + j) >= best[last] ? value : 0;
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
  for (std::int64_t first = 0; first < args.rows; first += kRows) {
    const int rows = static_cast<int>(args.rows - first < kRows ? args.rows - first : kRows);
    Own<<<rows, 128, 0, stream>>>(args, first);
    Meet<<<1, 32, 0, stream>>>(args);
    All<<<rows, 128, 0, stream>>>(args, first);
    Meet<<<1, 32, 0, stream>>>(args);
  }
}

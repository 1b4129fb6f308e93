// What a rank's tokens do to a state is linear: S becomes S M + U, and results are o + S p. U, M, o
// and p come from the tokens alone: the recurrence runs over 64 rows, 32 of zeros and 32 of the
// identity, to which no values are added. A block has a head, four lanes a row. It sends U and M to
// all later ranks, transposed. Each rank folds what it got, from rank 0 on, and adds S p.
//
// Boxes for U and M exist twice, for odd and even calls. Early ranks hear nothing of later ones
// otherwise, so at the begin of a call every rank tells the earlier ones that it has entered, and
// has thus read the boxes of calls before. A warp of its own does so, beside the recurrence.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 32, kRows = 2 * kDim, kMaxTokens = 64, kMaxHeads = 64, kBatch = 4;
constexpr int kPart = 8, kThreads = kRows * kDim / kPart;         // a lane has a part of a row
constexpr int kWarps = kThreads / 32, kCols = kDim / kWarps;      // columns of a warp
constexpr int kBox = kRows * kDim, kLoads = kBox / 4 / kThreads;  // words; vectors

struct Control {
  std::uint32_t calls[kMaxHeads];               // that this block has completed
  std::uint32_t sent[kMaxHeads][kMaxRanks];     // by source: the last call whose box is here
  std::uint32_t entered[kMaxHeads][kMaxRanks];  // by peer: the last call that it has entered
};

template <int kCount>
struct Words {
  std::uint32_t at[kCount];
  __device__ void Load(const std::uint32_t* from) {
#pragma unroll
    for (int n = 0; n < kCount; n += 4) {
      const uint4 v = *reinterpret_cast<const uint4*>(from + n);
      at[n] = v.x, at[n + 1] = v.y, at[n + 2] = v.z, at[n + 3] = v.w;
    }
  }
};

template <int kCount>
__device__ std::uint32_t Dot(const std::uint32_t (&a)[kCount], const Words<kCount>& b) {
  std::uint32_t sum = 0;
#pragma unroll
  for (int j = 0; j < kCount; ++j) sum += a[j] * b.at[j];
  return sum;
}

// What a lane needs of a token.
struct Token {
  Words<kPart> key, query;
  std::uint32_t value, factor, beta;
  __device__ void Load(const Args& args, int n, int row, int first) {
    key.Load(args.k + n * kDim + first);
    query.Load(args.q + n * kDim + first);
    value = row < kDim ? args.v[n * kDim + row] : 0;
    factor = 2 * args.decay[n] + 1;
    beta = args.beta[n];
  }
};

// The sum over the four lanes of a row.
__device__ std::uint32_t SumOfRow(std::uint32_t sum) {
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum + __shfl_xor_sync(~0u, sum, 2);
}

// All threads but those of the warp that tells others.
__device__ void Meet() { asm volatile("barrier.sync 1, 256;" ::: "memory"); }

__global__ void __launch_bounds__(kThreads + 32) DeltaRule(Args args) {
  __shared__ alignas(16) std::uint32_t results[kMaxTokens][kRows], box[kBox];
  __shared__ std::uint32_t before[2][kDim][kDim];  // columns of S, in turns
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int head = blockIdx.x, rank = args.rank, count = static_cast<int>(args.tokens);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t call = mine->calls[head] + 1;  //@epoch
  const auto ControlOf = [&](int r) { return reinterpret_cast<Control*>(args.scratch_peers[r]); };
  const auto Box = [&](int at, int source) {
    const int n = (call % 2 * kMaxRanks + source) * gridDim.x + head;
    return reinterpret_cast<std::uint32_t*>(args.scratch_peers[at] + sizeof(Control)) + n * kBox;
  };

  if (threadIdx.x >= kThreads) {
    if (lane < rank) StoreReleaseSys(&ControlOf(lane)->entered[head][rank], call);  //@enter
    if (lane > rank && lane < args.world) {
      WaitAcquireSys(&mine->entered[head][lane], call - 1);  //@free
    }
    __syncthreads();
    return;
  }

  const int row = threadIdx.x / (kDim / kPart), first = threadIdx.x % (kDim / kPart) * kPart;
  std::uint32_t part[kPart];
#pragma unroll
  for (int e = 0; e < kPart; ++e) part[e] = first + e == row - kDim;
  Token tokens[kBatch], next[kBatch];  // the next ones are on their way meanwhile
  const auto Load = [&](Token(&to)[kBatch], int t) {
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      to[n].Load(args, head * count + min(t + n, count - 1), row, first);
    }
  };
  Load(tokens, 0);
  for (int begin = 0; begin < count; begin += kBatch) {
    Load(next, begin + kBatch);
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      if (begin + n >= count) break;
      const Token& token = tokens[n];
      const std::uint32_t read = SumOfRow(Dot(part, token.key));
      const std::uint32_t change = token.beta * (token.value - token.factor * read);
#pragma unroll
      for (int e = 0; e < kPart; ++e) part[e] = token.factor * part[e] + change * token.key.at[e];
      const std::uint32_t result = SumOfRow(Dot(part, token.query));
      if (first == 0) results[begin + n][row] = result;
    }
#pragma unroll
    for (int n = 0; n < kBatch; ++n) tokens[n] = next[n];
  }
#pragma unroll
  for (int e = 0; e < kPart; ++e) {
    box[((row / kDim) * kDim + first + e) * kDim + row % kDim] = part[e];
  }
  __syncthreads();  //@made
  uint4 vectors[kLoads];
#pragma unroll
  for (int n = 0; n < kLoads; ++n) {
    vectors[n] = reinterpret_cast<const uint4*>(box)[n * kThreads + threadIdx.x];
  }
  for (int to = rank; to < args.world; ++to) {
    uint4* there = reinterpret_cast<uint4*>(Box(to, rank));
#pragma unroll
    for (int n = 0; n < kLoads; ++n) {
      if (rank == 0 && n >= kLoads / 2) break;  // nobody needs M of the first rank
      there[n * kThreads + threadIdx.x] = vectors[n];
    }
  }
  Meet();  //@sent
  if (threadIdx.x > rank && threadIdx.x < args.world) {
    StoreReleaseSys(&ControlOf(threadIdx.x)->sent[head][rank], call);  //@tell
  }
  if (threadIdx.x < rank) WaitAcquireSys(&mine->sent[head][threadIdx.x], call);  //@wait
  Meet();                                                                        //@arrived

  // A warp has four columns of S, a lane a row.
  std::uint32_t s[kDim] = {}, sums[kCols];
  Words<kDim> columns[kCols];
  const auto Fetch = [&](int source) {
    const std::uint32_t* from = Box(rank, source) + warp * kCols * kDim;
#pragma unroll
    for (int c = 0; c < kCols; ++c) {
      sums[c] = from[c * kDim + lane];
      if (source > 0) columns[c].Load(from + (kDim + c) * kDim);
    }
  };
  Fetch(0);
  for (int source = 1; source <= rank; ++source) {
    std::uint32_t(*state)[kDim] = before[source % 2];
#pragma unroll
    for (int c = 0; c < kCols; ++c) state[warp * kCols + c][lane] = sums[c];
    Fetch(source);
    Meet();  //@folded
#pragma unroll
    for (int j = 0; j < kDim; ++j) s[j] = state[j][lane];
#pragma unroll
    for (int c = 0; c < kCols; ++c) sums[c] += Dot(s, columns[c]);
  }
  uint4* state = reinterpret_cast<uint4*>(args.state + (head * kDim + lane) * kDim);
  state[warp] = {sums[0], sums[1], sums[2], sums[3]};
  for (int t = warp; t < count; t += kWarps) {
    columns[0].Load(results[t] + kDim);
    args.out[(head * count + t) * kDim + lane] = results[t][lane] + Dot(s, columns[0]);
  }
  if (threadIdx.x == 0) mine->calls[head] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  DeltaRule<<<args.heads, kThreads + 32, 0, stream>>>(args);
}

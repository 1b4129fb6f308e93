// What a rank's tokens do to a state is linear: S becomes S M + U, and results are o + S p. U, M, o
// and p come from the tokens alone: the recurrence runs over 64 rows, 32 of zeros and 32 of the
// identity, to which no values are added. A block has a head, four lanes a row. It sends U and M to
// the rows below in its column, transposed, folds what came from above, multiplies its results
// by w and sends them to the whole row of the grid. Tokens are shared out for the last sum.
//
// Boxes and sums exist twice, for odd and even calls. Ranks of a row wait for each other in every
// call. Upper ranks hear nothing of lower ones otherwise, so at the begin of a call every rank
// tells those above that it has entered, and has thus read the boxes of calls before.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 32, kRows = 2 * kDim, kMaxTokens = 64, kMaxHeads = 16, kBatch = 4;
constexpr int kPart = 8, kThreads = kRows * kDim / kPart;         // a lane has a part of a row
constexpr int kWarps = kThreads / 32, kCols = kDim / kWarps;      // columns of a warp
constexpr int kBox = kRows * kDim, kLoads = kBox / 4 / kThreads;  // words; vectors

struct Control {
  std::uint32_t calls[kMaxHeads];               // that this block has completed
  std::uint32_t sent[kMaxHeads][kMaxRanks];     // by row: the last call whose box is here
  std::uint32_t entered[kMaxHeads][kMaxRanks];  // by row: the last call that it has entered
  std::uint32_t added[kMaxHeads][kMaxRanks];    // by column: the last call whose summands are here
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
  Words<kPart> key, query, decay;
  std::uint32_t value, beta;
  __device__ void Load(const Args& args, int n, int row, int first) {
    key.Load(args.k + n * kDim + first);
    query.Load(args.q + n * kDim + first);
    value = row < kDim ? args.v[n * kDim + row] : 0;
    decay.Load(args.decay + n * kDim + first);
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

__global__ void __launch_bounds__(kThreads + 32) ChannelDelta(Args args) {
  __shared__ alignas(16) std::uint32_t results[kMaxTokens][kRows], box[kBox];
  __shared__ std::uint32_t before[2][kDim][kDim];  // columns of S, in turns
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int head = blockIdx.x, heads = gridDim.x, rank = args.rank, tp = static_cast<int>(args.tp);
  const int part = rank / tp, column = rank % tp, first_member = part * tp;
  const int members = min(tp, args.world - first_member), count = static_cast<int>(args.tokens);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::uint32_t call = mine->calls[head] + 1;  //@epoch
  const auto ControlOf = [&](int r) { return reinterpret_cast<Control*>(args.scratch_peers[r]); };
  const auto Data = [&](int at) {
    return reinterpret_cast<std::uint32_t*>(args.scratch_peers[at] + sizeof(Control));
  };
  const auto Box = [&](int at, int source) {
    return Data(at) + ((call % 2 * kMaxRanks + source) * heads + head) * kBox;
  };
  // What a column's head adds to the sums of rank `at`, behind all boxes.
  const auto Summand = [&](int at, int of_head, int of_column) {
    const int n = (call % 2 * heads + of_head) * kMaxRanks + of_column;
    return Data(at) + 2 * kMaxRanks * heads * kBox + n * count * kDim;
  };
  if (threadIdx.x >= kThreads) {
    const int peer = lane * tp + column;
    if (lane < part) StoreReleaseSys(&ControlOf(peer)->entered[head][part], call);  //@enter
    if (lane > part && peer < args.world) {
      WaitAcquireSys(&mine->entered[head][lane], call - 1);  //@free
    }
    __syncthreads();
    return;
  }

  const int row = threadIdx.x / (kDim / kPart), first = threadIdx.x % (kDim / kPart) * kPart;
  std::uint32_t s[kPart];
#pragma unroll
  for (int e = 0; e < kPart; ++e) s[e] = first + e == row - kDim;
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
#pragma unroll
      for (int e = 0; e < kPart; ++e) s[e] *= 2 * token.decay.at[e] + 1;
      const std::uint32_t change = token.beta * (token.value - SumOfRow(Dot(s, token.key)));
#pragma unroll
      for (int e = 0; e < kPart; ++e) s[e] += change * token.key.at[e];
      const std::uint32_t result = SumOfRow(Dot(s, token.query));
      if (first == 0) results[begin + n][row] = result;
    }
#pragma unroll
    for (int n = 0; n < kBatch; ++n) tokens[n] = next[n];
  }
#pragma unroll
  for (int e = 0; e < kPart; ++e) {
    box[((row / kDim) * kDim + first + e) * kDim + row % kDim] = s[e];
  }
  __syncthreads();  //@made
  uint4 vectors[kLoads];
#pragma unroll
  for (int n = 0; n < kLoads; ++n) {
    vectors[n] = reinterpret_cast<const uint4*>(box)[n * kThreads + threadIdx.x];
  }
  for (int to = rank; to < args.world; to += tp) {
    uint4* there = reinterpret_cast<uint4*>(Box(to, part));
#pragma unroll
    for (int n = 0; n < kLoads; ++n) {
      if (part == 0 && n >= kLoads / 2) break;  // nobody needs M of the first row
      there[n * kThreads + threadIdx.x] = vectors[n];
    }
  }
  Meet();  //@sent
  const int peer = threadIdx.x * tp + column;
  if (threadIdx.x > part && peer < args.world) {
    StoreReleaseSys(&ControlOf(peer)->sent[head][part], call);  //@tell
  }
  if (threadIdx.x < part) WaitAcquireSys(&mine->sent[head][threadIdx.x], call);  //@wait
  Meet();                                                                        //@arrived

  // A warp has four columns of S, a lane a row.
  std::uint32_t before_row[kDim] = {}, sums[kCols], weights[kDim];
#pragma unroll
  for (int j = 0; j < kDim; ++j) weights[j] = args.w[(head * kDim + j) * kDim + lane];
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
  for (int source = 1; source <= part; ++source) {
    std::uint32_t(*state)[kDim] = before[source % 2];
#pragma unroll
    for (int c = 0; c < kCols; ++c) state[warp * kCols + c][lane] = sums[c];
    Fetch(source);
    Meet();  //@folded
#pragma unroll
    for (int j = 0; j < kDim; ++j) before_row[j] = state[j][lane];
#pragma unroll
    for (int c = 0; c < kCols; ++c) sums[c] += Dot(before_row, columns[c]);
  }
  uint4* state = reinterpret_cast<uint4*>(args.state + (head * kDim + lane) * kDim);
  state[warp] = {sums[0], sums[1], sums[2], sums[3]};
  for (int t = warp; t < count; t += kWarps) {
    columns[0].Load(results[t] + kDim);
    results[t][lane] += Dot(before_row, columns[0]);
    __syncwarp();
    columns[0].Load(results[t]);
    const std::uint32_t summand = Dot(weights, columns[0]);
    for (int m = 0; m < members; ++m) {
      Summand(first_member + m, head, column)[t * kDim + lane] = summand;
    }
  }
  Meet();  //@pushed
  if (threadIdx.x < members) {
    StoreReleaseSys(&ControlOf(first_member + threadIdx.x)->added[head][column], call);  //@add
  }
  if (threadIdx.x < heads * members) {
    WaitAcquireSys(&mine->added[threadIdx.x / members][threadIdx.x % members], call);  //@collect
  }
  Meet();  //@collected
  for (int t = head + heads * warp; t < count; t += heads * kWarps) {
    std::uint32_t sum = 0;
    for (int h = 0; h < heads; ++h) {
      for (int m = 0; m < members; ++m) sum += Summand(rank, h, m)[t * kDim + lane];
    }
    args.out[t * kDim + lane] = sum;
  }
  if (threadIdx.x == 0) mine->calls[head] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  ChannelDelta<<<args.heads, kThreads + 32, 0, stream>>>(args);
}

// A chain without algebra: a warp per head waits for the state of the rank above in its column,
// runs over its tokens with a row of the state per thread, and hands the state on. A second kernel
// adds up what the ranks of a row have sent. There is one box for a state; who has read it says so.
// Rows acknowledge their sums in the same way.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kDim = 32, kMaxHeads = 16;

struct Control {
  std::uint32_t calls[kMaxHeads], sums, sent[kMaxHeads], taken[kMaxHeads];
  std::uint32_t added[kMaxHeads][kMaxRanks];  // by column: the last call whose summands are here
  std::uint32_t read[kMaxRanks];              // by column: the last call whose sums it has made
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

// What a head of a column adds to the sums of a rank, behind all states.
__device__ std::uint32_t* Summand(const Args& args, int rank, int head, int column) {
  const int heads = static_cast<int>(args.heads), tokens = static_cast<int>(args.tokens);
  const int n = heads * kDim * kDim + (head * kMaxRanks + column) * tokens * kDim;
  return reinterpret_cast<std::uint32_t*>(ControlOf(args, rank) + 1) + n;
}

__global__ void __launch_bounds__(kDim) DeltaRule(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int head = blockIdx.x, i = threadIdx.x, tokens = static_cast<int>(args.tokens);
  const int tp = static_cast<int>(args.tp), column = args.rank % tp, row = args.rank - column;
  const int members = min(tp, args.world - row);
  const std::uint32_t call = mine->calls[head] + 1;
  const auto Box = [&](int rank) {  // by column, so that lanes are next to each other
    auto* boxes = reinterpret_cast<std::uint32_t*>(ControlOf(args, rank) + 1);
    return boxes + head * kDim * kDim + i;
  };
  std::uint32_t s[kDim] = {};
  if (row > 0) {
    WaitAcquireSys(&mine->sent[head], call);
#pragma unroll
    for (int j = 0; j < kDim; ++j) s[j] = Box(args.rank)[j * kDim];
    __syncwarp();
    if (i == 0) StoreReleaseSys(&ControlOf(args, args.rank - tp)->taken[head], call);
  }
  if (i < members) WaitAcquireSys(&mine->read[i], call - 1);
  __syncwarp();
  for (int t = 0; t < tokens; ++t) {
    const int n = head * tokens + t;
    std::uint32_t read = 0, result = 0, k[kDim], q[kDim];
#pragma unroll
    for (int j = 0; j < kDim; ++j) k[j] = args.k[n * kDim + j];
#pragma unroll
    for (int j = 0; j < kDim; ++j) q[j] = args.q[n * kDim + j];
#pragma unroll
    for (int j = 0; j < kDim; ++j) s[j] *= 2 * args.decay[n * kDim + j] + 1;
#pragma unroll
    for (int j = 0; j < kDim; ++j) read += s[j] * k[j];
    const std::uint32_t change = args.beta[n] * (args.v[n * kDim + i] - read);
#pragma unroll
    for (int j = 0; j < kDim; ++j) {
      s[j] += change * k[j];
      result += s[j] * q[j];
    }
    std::uint32_t summand = 0;
    for (int j = 0; j < kDim; ++j) {
      summand += __shfl_sync(~0u, result, j) * args.w[(head * kDim + j) * kDim + i];
    }
    for (int m = 0; m < members; ++m) {
      Summand(args, row + m, head, column)[t * kDim + i] = summand;
    }
  }
  __syncwarp();
  if (i < members) StoreReleaseSys(&ControlOf(args, row + i)->added[head][column], call);
  if (args.rank + tp < args.world) {
    WaitAcquireSys(&mine->taken[head], call - 1);
#pragma unroll
    for (int j = 0; j < kDim; ++j) Box(args.rank + tp)[j * kDim] = s[j];
    __syncwarp();
    if (i == 0) StoreReleaseSys(&ControlOf(args, args.rank + tp)->sent[head], call);
  }
#pragma unroll
  for (int j = 0; j < kDim; ++j) args.state[(head * kDim + i) * kDim + j] = s[j];
  if (i == 0) mine->calls[head] = call;
}

__global__ void Add(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int heads = static_cast<int>(args.heads), tp = static_cast<int>(args.tp);
  const int column = args.rank % tp, row = args.rank - column, all = args.tokens * kDim;
  const int members = min(tp, args.world - row);
  const std::uint32_t call = mine->sums + 1;
  if (threadIdx.x < heads * members) {
    WaitAcquireSys(&mine->added[threadIdx.x / members][threadIdx.x % members], call);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < all; i += blockDim.x) {
    std::uint32_t sum = 0;
    for (int n = 0; n < heads * members; ++n)
      sum += Summand(args, args.rank, n / members, n % members)[i];
    args.out[i] = sum;
  }
  __syncthreads();
  if (threadIdx.x < members)
    StoreReleaseSys(&ControlOf(args, row + threadIdx.x)->read[column], call);
  if (threadIdx.x == 0) mine->sums = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  DeltaRule<<<args.heads, kDim, 0, stream>>>(args);
  Add<<<1, 256, 0, stream>>>(args);
}

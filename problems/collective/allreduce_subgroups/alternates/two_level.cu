#include <allranks/flags.h>

// For long vectors, in two exchanges: the members of a row send each other slices, then each sends
// the sum of its slice to all ranks, which weigh and add the sums of all rows. Rank 0 sends the
// grid first, as a word that carries its call. A peer's row_sum is open once it has told of its
// first exchange, and stays for the second. All meet all in each call, so nobody is two calls
// ahead: sums, weights and grid lie in two sets by turns.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 256, kSlack = 8;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint64_t grid[2][kMaxBlocks];  // call << 32 | ranks, in four bits each
  std::uint32_t first[kMaxBlocks][kMaxRanks], second[kMaxBlocks][kMaxRanks];
  float weight[2][kMaxBlocks][kMaxRanks];
};

struct Plan {
  std::uint32_t ranks;
  __device__ int At(int place) const { return ranks >> 4 * place & 15; }
  __device__ int PlaceOf(int rank) const {
    int place = 0;
    while (place < kMaxRanks - 1 && At(place) != rank) ++place;
    return place;
  }
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
__device__ float4* DataOf(const Args& args, int rank) {
  return reinterpret_cast<float4*>(args.scratch_peers[rank] + 8192);
}

__device__ void SendPlan(const Args& args, std::uint32_t call) {
  if (args.rank != 0 || threadIdx.x >= args.world) return;
  std::uint64_t word = call;
  for (int p = kMaxRanks - 1; p >= 0; --p) word = word << 4 | (p < args.world ? args.grid[p] : 15);
  StoreRelaxedSys(&ControlOf(args, threadIdx.x)->grid[call % 2][blockIdx.x], word);
}
__device__ Plan AwaitPlan(const Args& args, std::uint32_t call) {
  std::uint64_t word;
  do {
    word = LoadRelaxedSys(&ControlOf(args, args.rank)->grid[call % 2][blockIdx.x]);
  } while (word >> 32 != call);
  return {static_cast<std::uint32_t>(word)};
}

__device__ void Add(float4& sum, float4 v, float weight = 1) {
  sum = {sum.x + weight * v.x, sum.y + weight * v.y, sum.z + weight * v.z, sum.w + weight * v.w};
}

__global__ void __launch_bounds__(kThreads) TwoLevel(Args args) {
  const int b = blockIdx.x, t = threadIdx.x, vectors = args.n / 4, cols = args.cols;
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t call = mine->calls[b] + 1;
  const int set = call % 2;  // of sums and weights
  SendPlan(args, call);
  const Plan plan = AwaitPlan(args, call);
  const int place = plan.PlaceOf(args.rank), row = place / cols, rows = (args.world - 1) / cols + 1;
  const int group = min(cols, args.world - row * cols), member = place - row * cols;
  // The block's vectors, and the slices of them that members of the row add up.
  const int per = (vectors + gridDim.x - 1) / gridDim.x, begin = b * per;
  const int end = min(vectors, begin + per), slice = (per + group - 1) / group;
  const int slots = 2 * rows * vectors + b * (per + kSlack);
  const float4* in = reinterpret_cast<const float4*>(args.in);

  for (int i = begin + t; i < end; i += kThreads) {
    const int owner = (i - begin) / slice, at = slots + member * slice + (i - begin) % slice;
    if (owner != member) DataOf(args, plan.At(row * cols + owner))[at] = in[i];
  }
  __syncthreads();
  if (t < group) {
    const int r = plan.At(row * cols + t);
    StoreReleaseSys(&ControlOf(args, r)->first[b][args.rank], call);
    WaitAcquireSys(&mine->first[b][r], call);
  }
  __syncthreads();
  for (int j = t; j < slice && begin + member * slice + j < end; j += kThreads) {
    const int i = begin + member * slice + j;
    float4 v[kMaxRanks], sum = in[i];
#pragma unroll
    for (int k = 0; k < kMaxRanks; ++k) {
      if (k < group && k != member) v[k] = DataOf(args, args.rank)[slots + k * slice + j];
    }
#pragma unroll
    for (int k = 0; k < kMaxRanks; ++k) {
      if (k < group && k != member) Add(sum, v[k]);
    }
    for (int step = 0; step < args.world; ++step) {
      const int p = (place + step) % args.world, r = plan.At(p);
      float4* to = p / cols == row ? reinterpret_cast<float4*>(args.row_sum_peers[r])
                                   : DataOf(args, r) + (set * rows + row) * vectors;
      to[i] = sum;
    }
  }
  __syncthreads();
  if (t < args.world) {
    Control* peer = ControlOf(args, t);
    peer->weight[set][b][args.rank] = args.tokens[0];
    StoreReleaseSys(&peer->second[b][args.rank], call);
    WaitAcquireSys(&mine->second[b][t], call);
  }
  __syncthreads();
  for (int i = begin + t; i < end; i += kThreads) {
    float4 out = {};
    for (int q = 0; q < rows; ++q) {
      const int above = q * cols + place % cols;  // the column's member in row q
      if (above >= args.world) break;
      const float4* from = q == row ? reinterpret_cast<const float4*>(args.row_sum)
                                    : DataOf(args, args.rank) + (set * rows + q) * vectors;
      Add(out, from[i], mine->weight[set][b][plan.At(above)]);
    }
    reinterpret_cast<float4*>(args.out)[i] = out;
  }
  if (t == 0) mine->calls[b] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n / 4 + kThreads - 1) / kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  TwoLevel<<<blocks, kThreads, 0, stream>>>(args);
}

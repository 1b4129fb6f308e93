// One block of 1024 threads: rows are spread over the warps' groups of threads, sums meet in shared
// memory, and are pushed to all peers by plain stores with a flag behind them. The tables take
// turns, so that a peer may be one call ahead.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 1024, kMaxExperts = 128, kParts = kThreads / kMaxExperts;

struct Control {
  std::uint32_t calls;
  std::uint32_t told[kMaxRanks];  // by peer: the last call whose statistics are here
  float sums[2][kMaxRanks][kMaxExperts];
  int counts[2][kMaxRanks][kMaxExperts];
};

__global__ void __launch_bounds__(kThreads) Loss(Args args) {
  __shared__ float sums[kParts][kMaxExperts];
  __shared__ int counts[kMaxExperts];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1, set = call % 2;
  const int e = threadIdx.x % kMaxExperts, part = threadIdx.x / kMaxExperts;
  const int experts = static_cast<int>(8 * args.groups), rank = args.rank, world = args.world;
  if (part == 0) counts[e] = 0;
  __syncthreads();
  float sum = 0;
#pragma unroll 8
  for (std::int64_t t = part; e < experts && t < args.tokens; t += kParts) {
    sum += args.gates[t * experts + e];
  }
  sums[part][e] = sum;
  for (int i = threadIdx.x; i < args.tokens * args.topk; i += kThreads) {
    atomicAdd(&counts[args.ids[i]], 1);
  }
  __syncthreads();
  for (int r = part; e < experts && r < world; r += kParts) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[r]);
    float all = 0;
    for (int p = 0; p < kParts; ++p) all += sums[p][e];
    peer->sums[set][rank][e] = all;
    peer->counts[set][rank][e] = counts[e];
  }
  __syncthreads();
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->told[rank], call);
    WaitAcquireSys(&mine->told[threadIdx.x], call);
  }
  __syncthreads();
  const float all = static_cast<float>(world * args.tokens);
  if (part == 0) {
    float total = 0;
    int load = 0;
    for (int r = 0; e < experts && r < world; ++r) {
      total += mine->sums[set][r][e];
      load += mine->counts[set][r][e];
    }
    if (e < experts) args.importance[e] = total;
    if (e < experts) args.load[e] = load;
    float term = load / (all * args.topk) * (total / all);
    for (int step = 1; step < 32; step *= 2) term += __shfl_xor_sync(~0u, term, step);
    if (e % 32 == 0) sums[1][e / 32] = term;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float loss = 0;
    for (int w = 0; w < kMaxExperts / 32; ++w) loss += sums[1][w];
    args.loss[0] = experts * loss;
    mine->calls = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Loss<<<1, kThreads, 0, stream>>>(args);
}

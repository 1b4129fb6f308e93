// One kernel. A block takes 128 tokens at a time: their choices come into shared memory by
// coalesced loads and are counted there, by expert; then each thread has a token, and a warp
// counts the tokens of a rank by a vote. Every block leaves its sums in `partial`; the one that
// draws the last ticket adds them up. Tickets are never reset: the last one of a call is a multiple
// of the number of blocks. The next call's kernel begins when this one has ended.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxBlocks = 16;
constexpr int kMaxExperts = 512, kMaxTopk = 8, kMaxCounts = kMaxExperts + kMaxRanks;

struct Control {
  std::uint32_t tickets;
  std::int32_t partial[kMaxBlocks][kMaxCounts];  // by block: of experts, then of ranks
};

__global__ void __launch_bounds__(kThreads) Layout(Args args) {
  __shared__ int counts[kMaxCounts], choices[kThreads * kMaxTopk];
  __shared__ std::uint8_t owner[kMaxExperts];
  __shared__ bool last;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int tokens = static_cast<int>(args.tokens), topk = static_cast<int>(args.topk);
  const int world = args.world, per = static_cast<int>(args.per), experts = world * per;
  const int thread = threadIdx.x;
  for (int i = thread; i < experts + world; i += kThreads) counts[i] = 0;
  for (int i = thread; i < experts; i += kThreads) owner[i] = i / per;
  __syncthreads();

  for (int first = blockIdx.x * kThreads; first < tokens; first += gridDim.x * kThreads) {
    const int here = min(tokens - first, kThreads), token = first + thread;
#pragma unroll 8
    for (int i = thread; i < here * topk; i += kThreads) {
      const int expert = args.ids[first * topk + i];
      choices[i] = expert;
      atomicAdd(&counts[expert], 1);
    }
    __syncthreads();
    std::uint32_t mask = 0;
    if (thread < here) {
      for (int k = 0; k < topk; ++k) mask |= 1u << owner[choices[thread * topk + k]];
    }
    for (int r = 0; r < world; ++r) {
      const int goes = mask >> r & 1;
      if (thread < here) args.in_rank[token * world + r] = goes;
      const int together = __popc(__ballot_sync(~0u, goes));
      if (thread % 32 == 0) atomicAdd(&counts[experts + r], together);
    }
    __syncthreads();
  }

  for (int i = thread; i < experts + world; i += kThreads) {
    mine->partial[blockIdx.x][i] = counts[i];
  }
  __syncthreads();
  if (thread == 0) {
    const std::uint32_t before = FetchAddAcqRelGpu(&mine->tickets, 1u);
    last = (before + 1) % gridDim.x == 0;
  }
  __syncthreads();
  if (!last) return;
  for (int i = thread; i < experts + world; i += kThreads) {
    int sum = 0;
#pragma unroll 8
    for (int block = 0; block < gridDim.x; ++block) {
      sum += mine->partial[block][i];
    }
    if (i < experts) {
      args.expert_tokens[i] = sum;
    } else {
      args.rank_tokens[i - experts] = sum;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.tokens + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Layout<<<blocks, kThreads, 0, stream>>>(args);
}

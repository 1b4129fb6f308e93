// Straight into the peers' outputs: blocks tell each other that they have entered the call, write
// rows, tokens and counts in place, one copy per expert, and tell each other that they are done. A
// block is (peer, part), a part being every kParts-th token.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kParts = 4, kThreads = 256, kMaxPer = 16, kMaxTokens = 128;

struct Control {
  std::uint32_t calls[kMaxRanks][kParts];
  std::uint32_t entered[kMaxRanks][kParts];  // by peer: the last call that it has entered
  std::uint32_t done[kMaxRanks][kParts];     // by peer: the last call in which it has written
};

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ bool chosen[kMaxPer][kMaxTokens];
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer][part] + 1;
  const int world = args.world, tokens = static_cast<int>(args.tokens);
  const int per = static_cast<int>(args.per), topk = static_cast<int>(args.topk);
  const int vectors = static_cast<int>(args.hidden / 8), warp = threadIdx.x / 32;
  if (threadIdx.x == 0) StoreReleaseSys(&theirs->entered[rank][part], call);
  for (int i = threadIdx.x; i < per * tokens; i += kThreads) chosen[i / tokens][i % tokens] = false;
  __syncthreads();
  for (int i = threadIdx.x; i < tokens * topk; i += kThreads) {
    const int expert = args.ids[i] - peer * per;
    if (expert >= 0 && expert < per) chosen[expert][i / topk] = true;
  }
  if (threadIdx.x == 0) WaitAcquireSys(&mine->entered[peer][part], call);
  __syncthreads();
  // A warp has an expert at a time and walks through the tokens.
  for (int e = warp; e < per; e += kThreads / 32) {
    const int row = (e * world + rank) * tokens;
    int count = 0;
    for (int token = 0; token < tokens; ++token) {
      if (!chosen[e][token]) continue;
      if (token % kParts == part) {
        const uint4* from = reinterpret_cast<const uint4*>(args.x) + token * vectors;
        uint4* to = reinterpret_cast<uint4*>(args.recv_x_peers[peer]) +
                    static_cast<std::int64_t>(row + count) * vectors;
#pragma unroll 4
        for (int v = threadIdx.x % 32; v < vectors; v += 32) to[v] = from[v];
        if (threadIdx.x % 32 == 0) args.recv_token_peers[peer][row + count] = token;
      }
      ++count;
    }
    if (part == 0 && threadIdx.x % 32 == 0) args.recv_count_peers[peer][e * world + rank] = count;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&theirs->done[rank][part], call);
    WaitAcquireSys(&mine->done[peer][part], call);
    mine->calls[peer][part] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

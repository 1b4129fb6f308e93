// Counts go first and say that their rank is in the call; from them a source knows the places of its
// rows and writes them there itself, straight into the outputs. A block is (member, part), a part
// being every kParts-th token, and leaves when its partner has written.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kParts = 4, kThreads = 128, kMaxExperts = 32;

struct Control {
  std::uint32_t calls[kMaxRanks * kParts];
  std::uint32_t done[kMaxRanks * kParts];                     // by member and part: the last call
  std::uint64_t counts[2][kMaxRanks * kParts * kMaxExperts];  // by block, rank and expert
};

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ int own[kMaxExperts], all[kMaxRanks][kMaxExperts];
  const int t = threadIdx.x, lane = t % 32, group = static_cast<int>(args.group);
  const int per = static_cast<int>(args.per), experts = group * per, rank = args.rank;
  const int first = rank / group * group, peer = first + blockIdx.x / kParts;
  const int part = blockIdx.x % kParts, tokens = static_cast<int>(args.tokens);
  const int topk = static_cast<int>(args.topk), vectors = static_cast<int>(args.hidden / 8);
  const auto control = [&](int at) { return reinterpret_cast<Control*>(args.scratch_peers[at]); };
  Control* mine = control(rank);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  if (t < experts) own[t] = 0;
  __syncthreads();
  for (int i = t; i < tokens * topk; i += kThreads) atomicAdd(&own[args.ids[i]], 1);
  __syncthreads();
  // Block 0 tells everybody; what it tells is the same for all blocks.
  for (int i = t; blockIdx.x == 0 && i < args.world * experts; i += kThreads) {
    std::uint64_t* to = &control(i / experts)->counts[call % 2][rank * kMaxExperts + i % experts];
    StoreReleaseSys(to, std::uint64_t{call} << 32 | own[i % experts]);
  }
  for (int i = t; i < args.world * experts; i += kThreads) {
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->counts[call % 2][i / experts * kMaxExperts + i % experts]);
    } while (word >> 32 != call);
    all[i / experts][i % experts] = static_cast<int>(word);
  }
  __syncthreads();
  if (blockIdx.x == 0) {
    for (int e = t; e < experts; e += kThreads) {
      int load = 0;
      for (int r = 0; r < args.world; ++r) load += all[r][e];
      args.load[e] = load;
    }
    for (int i = t; i < per * group; i += kThreads) {
      args.count[i] = all[first + i % group][rank % group * per + i / group];
    }
  }
  for (int e = t / 32; e < per; e += kThreads / 32) {
    const int expert = peer % group * per + e;
    std::int64_t row = e * group * tokens;
    for (int r = first; r < rank; ++r) row += all[r][expert];
    for (int token = 0; token < tokens; ++token) {
      const bool chosen = lane < topk && args.ids[token * topk + lane] == expert;
      if (!__any_sync(~0u, chosen)) continue;
      if (token % kParts == part) {
        const uint4* from = reinterpret_cast<const uint4*>(args.x) + token * vectors;
        uint4* to = reinterpret_cast<uint4*>(args.recv_x_peers[peer]) + row * vectors;
#pragma unroll 4
        for (int v = lane; v < vectors; v += 32) to[v] = from[v];
        if (lane == 0) args.recv_from_peers[peer][row] = rank * tokens + token;
      }
      ++row;
    }
  }
  __syncthreads();
  if (t == 0) {
    StoreReleaseSys(&control(peer)->done[rank % group * kParts + part], call);
    WaitAcquireSys(&mine->done[blockIdx.x], call);
    mine->calls[blockIdx.x] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<static_cast<int>(args.group) * kParts, kThreads, 0, stream>>>(args);
}

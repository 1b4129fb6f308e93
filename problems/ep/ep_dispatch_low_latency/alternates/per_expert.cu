// Slots per source, expert and place, as the outputs have them: a block is (peer, part of columns)
// and pushes a row once per expert. Tokens and counts go as data before the flag, and the receiver
// copies slots to outputs without looking at choices.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kParts = 4, kThreads = 256, kMaxPer = 16, kMaxTokens = 128;

struct Control {
  std::uint32_t calls[kMaxRanks][kParts];
  std::uint32_t sent[kMaxRanks][kParts];               // by source: the last call that is here
  std::int32_t counts[2][kMaxRanks][kParts][kMaxPer];  // by source and its block
};

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ bool chosen[kMaxPer][kMaxTokens];
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer][part] + 1;
  const int world = args.world, tokens = static_cast<int>(args.tokens);
  const int per = static_cast<int>(args.per), topk = static_cast<int>(args.topk);
  const int vectors = static_cast<int>(args.hidden / 8), each = (vectors + kParts - 1) / kParts;
  const int first = min(part * each, vectors), last = min(first + each, vectors);
  const int lane = threadIdx.x % 32, rows = per * tokens;
  // At rank `at`, from `source`: rows with columns, and tokens by part.
  const auto slots = [&](int at, int source) {
    return reinterpret_cast<uint4*>(args.scratch_peers[at] + sizeof(Control)) +
           static_cast<std::int64_t>(call % 2 * world + source) * rows * (vectors + 1);
  };
  const auto numbers = [&](uint4* at) {
    return reinterpret_cast<std::int32_t*>(at + rows * vectors) + part * rows;
  };
  for (int i = threadIdx.x; i < rows; i += kThreads) chosen[i / tokens][i % tokens] = false;
  __syncthreads();
  for (int i = threadIdx.x; i < tokens * topk; i += kThreads) {
    const int expert = args.ids[i] - peer * per;
    if (expert >= 0 && expert < per) chosen[expert][i / topk] = true;
  }
  __syncthreads();
  uint4* there = slots(peer, rank);
  for (int e = threadIdx.x / 32; e < per; e += kThreads / 32) {
    int count = 0;
    for (int token = 0; token < tokens; ++token) {
      if (!chosen[e][token]) continue;
      const uint4* from = reinterpret_cast<const uint4*>(args.x) + token * vectors;
      uint4* to = there + (e * tokens + count) * vectors;
      for (int v = first + lane; v < last; v += 32) to[v] = from[v];
      if (lane == 0) numbers(there)[e * tokens + count] = token;
      ++count;
    }
    if (lane == 0) theirs->counts[call % 2][rank][part][e] = count;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&theirs->sent[rank][part], call);
    WaitAcquireSys(&mine->sent[peer][part], call);
  }
  __syncthreads();
  uint4* here = slots(rank, peer);
  for (int e = threadIdx.x / 32; e < per; e += kThreads / 32) {
    const int count = mine->counts[call % 2][peer][part][e];
    const std::int64_t row = (e * world + peer) * tokens;
    for (int i = 0; i < count; ++i) {
      const uint4* from = here + (e * tokens + i) * vectors;
      uint4* to = reinterpret_cast<uint4*>(args.recv_x) + (row + i) * vectors;
      for (int v = first + lane; v < last; v += 32) to[v] = from[v];
    }
    if (part > 0) continue;
    if (lane == 0) args.recv_count[e * world + peer] = count;
    for (int i = lane; i < count; i += 32) {
      args.recv_token[row + i] = numbers(here)[e * tokens + i];
    }
  }
  if (threadIdx.x == 0) mine->calls[peer][part] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

// A block is (peer, part): it sends one part of the columns to that peer and receives the same part
// from it. A row goes to a rank once, however many of its experts are there, into a slot by source
// and token. With it goes for each expert of the peer a mask of the tokens that have chosen it.
// Masks say all: how many rows there are, which ones, and where they belong. The receiving block
// copies them from slots to outputs, a row once per expert. One flag tells of both.
//
// Slots and masks exist twice, for odd and even calls. A block that writes in call k + 2 has seen
// the peer's flag of call k + 1. The peer had ended call k then, and had read what call k left.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kParts = 2, kThreads = 256, kBatch = 8;
constexpr int kWide = 8;  // vectors of 16 bytes: columns of a part, before it takes the next ones
constexpr int kMaxPer = 16, kMaxTokens = 128, kMasks = kMaxTokens / 32;

struct Control {
  std::uint32_t calls[kMaxRanks][kParts];  // that the block has completed
  std::uint32_t sent[kMaxRanks][kParts];   // by source: the last call whose part is here
  std::uint32_t chosen[2][kMaxRanks][kParts][kMaxPer * kMasks];  // by source and its block: masks
};

// Vectors first, first + stride, ... of a row. All are on their way before the first is needed.
__device__ void CopyRow(uint4* to, const uint4* from, int first, int end, int stride) {
  for (int base = first; base < end; base += kBatch * stride) {
    uint4 v[kBatch];
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      if (base + n * stride < end) v[n] = from[base + n * stride];
    }
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      if (base + n * stride < end) to[base + n * stride] = v[n];
    }
  }
}

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ std::uint32_t masks[kMaxPer * kMasks];    // by expert: bits of tokens
  __shared__ std::int16_t list[kMaxPer * kMaxTokens];  // tokens of all experts, one after the other
  __shared__ int before[kMaxPer + 1];                  // where the tokens of an expert begin
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer][part] + 1;  //@epoch
  const int world = args.world, tokens = static_cast<int>(args.tokens);
  const int per = static_cast<int>(args.per), topk = static_cast<int>(args.topk);
  const int vectors = static_cast<int>(args.hidden / 8);
  const int words = (tokens + 31) / 32;  // of a mask
  const int line = threadIdx.x / kWide, lines = kThreads / kWide, set = call % 2 * world * tokens;
  const int first = part * kWide + threadIdx.x % kWide, stride = kParts * kWide;
  const uint4* x = reinterpret_cast<const uint4*>(args.x);

  for (int i = threadIdx.x; i < per * words; i += kThreads) masks[i] = 0;
  __syncthreads();  //@zeroed
  for (int i = threadIdx.x; i < tokens * topk; i += kThreads) {
    const int expert = args.ids[i] - peer * per, token = i / topk;
    if (expert >= 0 && expert < per)
      atomicOr(&masks[expert * words + token / 32], 1u << token % 32);
  }
  __syncthreads();  //@known
  if (peer != rank) {
    uint4* to = reinterpret_cast<uint4*>(theirs + 1) + (set + rank * tokens) * vectors;
    for (int token = line; token < tokens; token += lines) {
      std::uint32_t any = 0;
      for (int e = 0; e < per; ++e) any |= masks[e * words + token / 32];
      if ((any >> token % 32 & 1) == 0) continue;
      CopyRow(to + token * vectors, x + token * vectors, first, vectors, stride);
    }
    for (int i = threadIdx.x; i < per * words; i += kThreads) {
      theirs->chosen[call % 2][rank][part][i] = masks[i];
    }
    __syncthreads();  //@sent
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->sent[rank][part], call);  //@tell
      WaitAcquireSys(&mine->sent[peer][part], call);     //@wait
    }
    __syncthreads();  //@arrived
    for (int i = threadIdx.x; i < per * words; i += kThreads) {
      masks[i] = mine->chosen[call % 2][peer][part][i];
    }
    x = reinterpret_cast<const uint4*>(mine + 1) + (set + peer * tokens) * vectors;
    __syncthreads();
  }

  if (threadIdx.x < per) {
    const int e = threadIdx.x;
    int count = 0, start = 0;
    for (int w = 0; w < words; ++w) count += __popc(masks[e * words + w]);
    for (int i = 0; i < e * words; ++i) start += __popc(masks[i]);
    before[e] = start;
    if (e == per - 1) before[per] = start + count;
    if (part == 0) args.recv_count[e * world + peer] = count;
  }
  __syncthreads();  //@counted
  for (int i = threadIdx.x; i < per * tokens; i += kThreads) {
    const int e = i / tokens, token = i % tokens;
    const std::uint32_t mask = masks[e * words + token / 32];
    if ((mask >> token % 32 & 1) == 0) continue;
    int slot = __popc(mask & ((1u << token % 32) - 1));
    for (int w = 0; w < token / 32; ++w) slot += __popc(masks[e * words + w]);
    list[before[e] + slot] = static_cast<std::int16_t>(e * kMaxTokens + token);
    if (part == 0) args.recv_token[(e * world + peer) * tokens + slot] = token;
  }
  __syncthreads();  //@listed
  for (int row = line; row < before[per]; row += lines) {
    const int e = list[row] / kMaxTokens, token = list[row] % kMaxTokens, slot = row - before[e];
    const std::int64_t place = (e * world + peer) * tokens + slot;
    uint4* to = reinterpret_cast<uint4*>(args.recv_x) + place * vectors;
    CopyRow(to, x + token * vectors, first, vectors, stride);
  }
  if (threadIdx.x == 0) mine->calls[peer][part] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

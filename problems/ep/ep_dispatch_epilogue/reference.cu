// A block is (peer, part): it sends one part of the columns to that peer and receives the same part
// from it. For each expert of the peer there is a mask of the tokens that have chosen it. Masks
// travel first, each half in a word with the number of the call, which needs no fence: from those
// of all ranks a block knows where the rows of its peer belong, while the rows are on their way to
// slots by source and token. A row goes to a rank once and is copied once per expert. Padding is
// shared out: the blocks of peer p clear that of the experts p, p + world, ...
//
// Slots and masks exist twice, for odd and even calls. A block that writes in call k + 2 has seen
// the peer's flag of call k + 1. The peer had ended call k then, and had read what call k left.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kParts = 2, kThreads = 256, kBatch = 8;
constexpr int kWide = 8;  // vectors of 16 bytes: columns of a part, before it takes the next ones
constexpr int kMaxPer = 16, kMaxTokens = 128, kMasks = kMaxTokens / 32, kMaxTile = 128;

struct Control {
  std::uint32_t calls[kMaxRanks][kParts];               // that the block has completed
  std::uint32_t sent[kMaxRanks][kParts];                // by source: the last call that is here
  std::uint64_t masks[2][kMaxRanks][kMaxPer * kMasks];  // by source: call, mask
};

// Vectors first, first + stride, ... of a row, or zeros. All are on their way before the first is
// needed.
__device__ void CopyRow(uint4* to, const uint4* from, int first, int end, int stride) {
  for (int base = first; base < end; base += kBatch * stride) {
    uint4 v[kBatch];
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      v[n] = {};
      if (from != nullptr && base + n * stride < end) v[n] = from[base + n * stride];
    }
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      if (base + n * stride < end) to[base + n * stride] = v[n];
    }
  }
}

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ std::uint32_t chosen[kMaxRanks][kMaxPer][kMasks];  // by source: of this rank's experts
  __shared__ int start[kMaxPer + 1], first_row[kMaxPer], end_row[kMaxPer];
  __shared__ int entry[kMaxPer * (kMaxTokens + kMaxTile)];  // row and token + 1, 0 for padding
  __shared__ int entries;
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer][part] + 1;  //@epoch
  const int world = args.world, tokens = static_cast<int>(args.tokens);
  const int per = static_cast<int>(args.per), topk = static_cast<int>(args.topk);
  const int vectors = static_cast<int>(args.hidden / 8), tile = static_cast<int>(args.tile);
  const int line = threadIdx.x / kWide, lines = kThreads / kWide, set = call % 2 * world * tokens;
  const int first = part * kWide + threadIdx.x % kWide, stride = kParts * kWide;
  const int words = (tokens + 31) / 32, all_masks = per * words;

  // What goes to the peer; its place in shared memory is later that of rank 0's masks.
  std::uint32_t* going = &chosen[0][0][0];
  for (int i = threadIdx.x; i < all_masks; i += kThreads) going[i] = 0;
  if (threadIdx.x == 0) entries = 0;
  __syncthreads();  //@zeroed
  for (int i = threadIdx.x; i < tokens * topk; i += kThreads) {
    const int expert = args.ids[i] - peer * per, token = i / topk;
    if (expert < 0 || expert >= per) continue;
    atomicOr(&going[expert * words + token / 32], 1u << token % 32);
  }
  __syncthreads();  //@known
  if (part == 0) {
    for (int i = threadIdx.x; i < all_masks; i += kThreads) {
      const std::uint64_t word = std::uint64_t{call} << 32 | going[i];
      StoreRelaxedSys(&theirs->masks[call % 2][rank][i], word);  //@post
    }
  }
  const uint4* from = reinterpret_cast<const uint4*>(args.x);
  if (peer != rank) {
    uint4* to = reinterpret_cast<uint4*>(theirs + 1);
    uint4* slots = to + (set + rank * tokens) * vectors;
    for (int token = line; token < tokens; token += lines) {
      std::uint32_t any = 0;
      for (int e = 0; e < per; ++e) any |= going[e * words + token / 32];
      if ((any >> token % 32 & 1) == 0) continue;
      CopyRow(slots + token * vectors, from + token * vectors, first, vectors, stride);
    }
    from = reinterpret_cast<const uint4*>(mine + 1) + (set + peer * tokens) * vectors;
  }
  __syncthreads();  //@sent
  if (peer != rank && threadIdx.x == 0) {
    StoreReleaseSys(&theirs->sent[rank][part], call);  //@tell
  }
  for (int i = threadIdx.x; i < world * all_masks; i += kThreads) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->masks[call % 2][i / all_masks][i % all_masks]);  //@look
    } while (word >> 32 != call);  //@again
    chosen[i / all_masks][i % all_masks / words][i % words] = static_cast<std::uint32_t>(word);
  }
  __syncthreads();  //@heard

  // Where experts begin, and the rows of this peer in them.
  if (threadIdx.x < per) {
    int base = 0;
    for (int e = 0; e <= threadIdx.x; ++e) {
      int total = 0;
      const int begin = base;
      for (int s = 0; s < world; ++s) {
        int count = 0;
        for (int w = 0; w < words; ++w) count += __popc(chosen[s][e][w]);
        if (s < peer) base += count;
        total += count;
      }
      if (e == threadIdx.x) {
        first_row[e] = base;
        start[e] = begin;
        end_row[e] = begin + total;
      }
      base = begin + (total + tile - 1) / tile * tile;
    }
    if (threadIdx.x == per - 1) start[per] = base;
  }
  __syncthreads();  //@placed
  if (blockIdx.x == 0 && threadIdx.x <= per) args.starts[threadIdx.x] = start[threadIdx.x];
  const auto add = [&](int row, int token) {
    entry[atomicAdd(&entries, 1)] = row * 256 + token + 1;
    if (part == 0) args.origin[row] = token < 0 ? -1 : peer * tokens + token;
  };
  for (int i = threadIdx.x; i < per * tokens; i += kThreads) {
    const int e = i / tokens, token = i % tokens;
    const std::uint32_t mask = chosen[peer][e][token / 32];
    if ((mask >> token % 32 & 1) == 0) continue;
    int row = first_row[e] + __popc(mask & ((1u << token % 32) - 1));
    for (int w = 0; w < token / 32; ++w) row += __popc(chosen[peer][e][w]);
    add(row, token);
  }
  for (int e = peer; e < per; e += world) {
    for (int row = end_row[e] + threadIdx.x; row < start[e + 1]; row += kThreads) add(row, -1);
  }
  if (peer != rank && threadIdx.x == 0) WaitAcquireSys(&mine->sent[peer][part], call);  //@wait
  __syncthreads();                                                                      //@arrived
  for (int i = line; i < entries; i += lines) {
    const int token = entry[i] % 256 - 1;
    uint4* to = reinterpret_cast<uint4*>(args.rows) + entry[i] / 256 * args.hidden / 8;
    CopyRow(to, token < 0 ? nullptr : from + token * vectors, first, vectors, stride);
  }
  if (threadIdx.x == 0) mine->calls[peer][part] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

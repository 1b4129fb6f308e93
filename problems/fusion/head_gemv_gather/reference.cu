// A block has a contiguous part of the words, and its warps take words in turn: the weights of a
// word are read once and multiplied with four rows of hidden states, which lie in shared memory as
// floats. The logits of the part are collected there, too, and then stored into the output of
// every rank, 16 bytes per thread.
//
// Block 0 tells all peers that this rank is inside the call while the others multiply; a peer's
// output is open from then on. A block tells all peers that its logits are there, and stays until
// it has heard the same of theirs. Flags hold the last call, and only grow.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256, kWarps = kThreads / 32, kRows = 4;
constexpr int kMaxDepth = 1024, kWords = 64;  // of a block at a time

struct Control {
  std::uint32_t calls[kMaxBlocks];              // that the block has completed
  std::uint32_t entered[kMaxRanks];             // by rank: the last call
  std::uint32_t stored[kMaxBlocks][kMaxRanks];  // by rank: the last call whose logits are here
};

__device__ float2 Floats(std::uint32_t halves) {
  return {Number<__half>::ToFloat(static_cast<std::uint16_t>(halves)),
          Number<__half>::ToFloat(static_cast<std::uint16_t>(halves >> 16))};
}

__global__ void __launch_bounds__(kThreads) Logits(Args args) {
  __shared__ alignas(16) float hidden[kRows][kMaxDepth], sums[kRows][kWords];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, world = args.world;
  const int rows = args.rows, vocab = args.vocab, depth = args.depth, block = blockIdx.x;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % world]);
  const std::uint32_t call = mine->calls[block] + 1;                                   //@epoch
  if (block == 0 && thread < world) StoreReleaseSys(&peer->entered[args.rank], call);  //@enter

  const int part = (vocab / 4 + gridDim.x - 1) / gridDim.x * 4, begin = block * part;
  for (int first = 0; first < rows; first += kRows) {
    const int have = min(kRows, rows - first);
    for (int i = thread; i < have * depth / 2; i += kThreads) {
      const int row = 2 * i / depth, at = 2 * i % depth;
      const auto* halves = reinterpret_cast<const std::uint32_t*>(args.hidden);
      *reinterpret_cast<float2*>(&hidden[row][at]) = Floats(halves[first * depth / 2 + i]);
    }
    __syncthreads();  //@loaded
    for (int base = begin; base < min(begin + part, vocab); base += kWords) {
      const int words = min(min(begin + part, vocab) - base, kWords);
      for (int word = warp; word < words; word += kWarps) {
        float sum[kRows] = {};
        const uint4* weight =
            reinterpret_cast<const uint4*>(args.weight) + (base + word) * (depth / 8);
        for (int i = lane; i < depth / 8; i += 32) {
          const uint4 eight = weight[i];
          const float2 w[4] = {Floats(eight.x), Floats(eight.y), Floats(eight.z), Floats(eight.w)};
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            if (r >= have) break;
            const float4 a = *reinterpret_cast<const float4*>(&hidden[r][8 * i]);
            const float4 b = *reinterpret_cast<const float4*>(&hidden[r][8 * i + 4]);
            sum[r] += a.x * w[0].x + a.y * w[0].y + a.z * w[1].x + a.w * w[1].y;
            sum[r] += b.x * w[2].x + b.y * w[2].y + b.z * w[3].x + b.w * w[3].y;
          }
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (r >= have) break;
          for (int d = 16; d > 0; d /= 2) sum[r] += __shfl_xor_sync(~0u, sum[r], d);
          if (lane == r) sums[r][word] = sum[r];
        }
      }
      if (thread < world) WaitAcquireSys(&mine->entered[thread], call);  //@open
      __syncthreads();                                                   //@summed
      const int each = words / 4, quads = have * each;
      for (int i = thread; i < quads * world; i += kThreads) {
        const int to = (args.rank + i / quads) % world, row = i % quads / each, at = i % each;
        const int place = ((first + row) * world + args.rank) * (vocab / 4) + base / 4 + at;
        reinterpret_cast<float4*>(args.logits_peers[to])[place] =
            *reinterpret_cast<const float4*>(&sums[row][4 * at]);
      }
      __syncthreads();  //@reused
    }
  }
  if (thread < world) {
    StoreReleaseSys(&peer->stored[block][args.rank], call);  //@tell
    WaitAcquireSys(&mine->stored[block][thread], call);      //@stay
  }
  if (thread == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.vocab + kWarps - 1) / kWarps;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Logits<<<blocks, kThreads, 0, stream>>>(args);
}

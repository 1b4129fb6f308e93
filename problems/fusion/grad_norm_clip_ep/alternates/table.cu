// One hop and no fence: every block sends its three sums of squares to all ranks, each in a word of
// 64 bits that also has the number of the call. Every block of every rank collects the words of all
// blocks of all ranks and adds them up for itself, in the same order everywhere.
//
// There are two tables of words, used in turn. A rank writes those of call k + 2 after it has the
// words of call k + 1 from all blocks of all ranks: these have ended call k.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 8, kThreads = 512;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint64_t table[2][kMaxRanks * kMaxBlocks * 3];  // number of the call, bits of the sum
};

struct Three {
  float at[3] = {};
};

struct Group {
  const float* in;
  float* out;
  std::int64_t count;
  float scale;  // before anything else
};

// Over all threads of the block, for all of them.
__device__ Three BlockSum(Three value) {
  __shared__ Three waves[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    for (float& x : value.at) x += __shfl_xor_sync(~0u, x, step);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) waves[threadIdx.x / 32] = value;
  __syncthreads();
  Three sum = waves[threadIdx.x % (kThreads / 32)];
  for (int step = kThreads / 64; step > 0; step /= 2) {
    for (float& x : sum.at) x += __shfl_xor_sync(~0u, x, step);
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) Clip(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1, set = call % 2;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int words = 3 * gridDim.x;  // of one rank
  const Group groups[3] = {{args.dense, args.new_dense, args.n, 1.0f},
                           {args.expert, args.new_expert, args.e, 1.0f / args.ep},
                           {args.replicated, args.new_replicated, args.s, 1.0f}};
  Three sums;
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    const Group& group = groups[k];
#pragma unroll 4
    for (std::int64_t i = first; i < group.count; i += stride) {
      const float x = group.scale * group.in[i];
      sums.at[k] += x * x;
    }
  }
  sums = BlockSum(sums);
  sums.at[2] = args.rank < args.ep ? sums.at[2] : 0;
  if (threadIdx.x < 3 * args.world) {
    const int peer = threadIdx.x / 3, k = threadIdx.x % 3;
    const float sum = k == 0 ? sums.at[0] : k == 1 ? sums.at[1] : sums.at[2];
    Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
    const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(sum);
    StoreRelaxedSys(&theirs->table[set][args.rank * words + 3 * blockIdx.x + k], word);
  }

  Three of;
  for (int i = threadIdx.x; i < args.world * words; i += kThreads) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->table[set][i]);
    } while (word >> 32 != call);
    of.at[i % 3] += __uint_as_float(static_cast<std::uint32_t>(word));
  }
  sums = BlockSum(of);
  const float norm = sqrtf(sums.at[0] + sums.at[1] + sums.at[2]);
  const float limit = static_cast<float>(args.max_norm);
  const float scale = norm > 0 ? min(1.0f, limit / norm) : 1;
  if (first == 0) {
    for (int k = 0; k < 3; ++k) args.norms[k] = sqrtf(sums.at[k]);
    args.norms[3] = norm;
  }
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    const Group& group = groups[k];
#pragma unroll 4
    for (std::int64_t i = first; i < group.count; i += stride) {
      group.out[i] = scale * (group.scale * group.in[i]);
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t all = args.n + args.e + args.s, needed = (all + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Clip<<<blocks, kThreads, 0, stream>>>(args);
}

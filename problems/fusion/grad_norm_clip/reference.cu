// One hop and no fence: every block sends the sum of its squares to all ranks, as a word of 64 bits
// that also has the number of the call. Every block of every rank then collects the words of all
// blocks of all ranks and adds them up for itself, while its gradients are still in registers.
//
// There are two tables of words, used in turn. A rank writes those of call k + 2 after it has the
// words of call k + 1 from all blocks of all ranks: these have ended call k.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 512, kKept = 1;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint64_t table[2][kMaxRanks][kMaxBlocks];  // number of the call, bits of the sum
};

struct Vector {
  float at[4];
  __device__ float operator[](int i) const { return at[i]; }
};

__device__ Vector Load(const float* from, std::int64_t n, std::int64_t i) {
  const std::int64_t at = 4 * i;
  if (at + 4 <= n) {
    const float4 v = reinterpret_cast<const float4*>(from)[i];
    return {v.x, v.y, v.z, v.w};
  }
  return {from[at], at + 1 < n ? from[at + 1] : 0, at + 2 < n ? from[at + 2] : 0, 0};
}

__device__ void Store(float* to, std::int64_t n, std::int64_t i, Vector v) {
  const std::int64_t at = 4 * i;
  if (at + 4 <= n) {
    reinterpret_cast<float4*>(to)[i] = {v[0], v[1], v[2], v[3]};
    return;
  }
  to[at] = v[0];
  if (at + 1 < n) to[at + 1] = v[1];
  if (at + 2 < n) to[at + 2] = v[2];
}

// Over all threads of the block, for all of them.
__device__ float BlockSum(float value) {
  __shared__ float waves[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();  //@again
  if (threadIdx.x % 32 == 0) waves[threadIdx.x / 32] = value;
  __syncthreads();  //@waves
  float sum = 0;
  for (int w = 0; w < kThreads / 32; ++w) sum += waves[w];
  return sum;
}

__global__ void __launch_bounds__(kThreads) Clip(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t vectors = (args.n + 3) / 4;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int blocks = gridDim.x, set = call % 2;

  Vector kept[kKept];
#pragma unroll
  for (int k = 0; k < kKept; ++k) {  // all on their way before the first is needed
    const std::int64_t i = first + k * stride;
    kept[k] = i < vectors ? Load(args.grad, args.n, i) : Vector{};
  }
  float sum = 0;
  const auto add = [&](Vector v) {
    for (int j = 0; j < 4; ++j) sum += v[j] * v[j];
  };
#pragma unroll
  for (int k = 0; k < kKept; ++k) add(kept[k]);
  for (std::int64_t i = first + kKept * stride; i < vectors; i += stride) {
    add(Load(args.grad, args.n, i));
  }
  sum = BlockSum(sum);
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(sum);
    StoreRelaxedSys(&peer->table[set][args.rank][blockIdx.x], word);  //@send
  }

  float total = 0;
  for (int i = threadIdx.x; i < args.world * blocks; i += kThreads) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->table[set][i / blocks][i % blocks]);  //@look
    } while (word >> 32 != call);  //@arrived
    total += __uint_as_float(static_cast<std::uint32_t>(word));
  }
  const float norm = sqrtf(BlockSum(total));
  const float limit = static_cast<float>(args.max_norm);
  const float scale = norm > 0 ? min(1.0f, limit / norm) : 1;
  if (first == 0) args.norm[0] = norm;

  const auto scaled = [&](Vector v) {
    return Vector{v[0] * scale, v[1] * scale, v[2] * scale, v[3] * scale};
  };
#pragma unroll
  for (int k = 0; k < kKept; ++k) {
    const std::int64_t i = first + k * stride;
    if (i < vectors) Store(args.clipped, args.n, i, scaled(kept[k]));
  }
  for (std::int64_t i = first + kKept * stride; i < vectors; i += stride) {
    Store(args.clipped, args.n, i, scaled(Load(args.grad, args.n, i)));
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = ((args.n + 3) / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Clip<<<blocks, kThreads, 0, stream>>>(args);
}

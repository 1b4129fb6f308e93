// Two kernels, both with a block per row: the first one sends maximum, sum and label's logit to all
// ranks, as words that also hold the number of the call; the second one waits for them. Sums are
// powers of two. Two sets, used in turn: a rank leaves call k with words of call k of all ranks,
// which have left call k - 1.
#include <allranks/flags.h>

constexpr int kBlocks = 64, kThreads = 64, kWords = 4096;
constexpr float kLog2e = 1.44269504f;

__device__ std::uint64_t* Words(const Args& args, int rank, std::uint32_t call, std::int64_t row) {
  std::uint64_t* words = reinterpret_cast<std::uint64_t*>(args.scratch_peers[rank] + kWords);
  return words + ((call & 1) * args.rows + row) * 3 * kMaxRanks;
}

__global__ void Summarise(Args args) {
  __shared__ float most_of[2], sum_of[2];
  const std::uint32_t call = *reinterpret_cast<std::uint32_t*>(args.scratch) + 1;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    const float* x = args.logits + row * args.vocab;
    float most = -INFINITY, sum = 0;
    for (int j = threadIdx.x; j < args.vocab; j += kThreads) most = fmaxf(most, x[j]);
    for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (threadIdx.x % 32 == 0) most_of[threadIdx.x / 32] = most;
    __syncthreads();
    most = fmaxf(most_of[0], most_of[1]);
    for (int j = threadIdx.x; j < args.vocab; j += kThreads) sum += exp2f((x[j] - most) * kLog2e);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) sum_of[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < args.world) {
      const float said[] = {most, sum_of[0] + sum_of[1], x[args.label[row]]};
      std::uint64_t* to = Words(args, threadIdx.x, call, row) + 3 * args.rank;
      for (int i = 0; i < 3; ++i) {
        allranks::StoreRelaxedSys(&to[i], std::uint64_t{call} << 32 | __float_as_uint(said[i]));
      }
    }
  }
}

__device__ float Receive(const std::uint64_t* from, std::uint32_t call) {
  std::uint64_t word;
  do {
    word = allranks::LoadRelaxedSys(from);
  } while (word >> 32 != call);
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

__global__ void Gradients(Args args) {
  __shared__ float said[3 * kMaxRanks];
  const std::uint32_t call = *reinterpret_cast<std::uint32_t*>(args.scratch) + 1;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    __syncthreads();
    if (threadIdx.x < 3 * args.world) {
      said[threadIdx.x] = Receive(Words(args, args.rank, call, row) + threadIdx.x, call);
    }
    __syncthreads();
    float most = -INFINITY, sum = 0, chosen = 0;
    for (int r = 0; r < args.world; ++r) most = fmaxf(most, said[3 * r]);
    for (int r = 0; r < args.world; ++r) {
      sum += said[3 * r + 1] * exp2f((said[3 * r] - most) * kLog2e);
      chosen += said[3 * r + 2];
    }
    for (int j = threadIdx.x; j < args.vocab; j += kThreads) {
      const float p = exp2f((args.logits[row * args.vocab + j] - most) * kLog2e);
      const float target = j == args.label[row] ? 1.0f / args.world : 0;
      args.grad[row * args.vocab + j] = __fdividef(p, sum) - target;
    }
    if (threadIdx.x == 0) args.loss[row] = most + logf(sum) - chosen / args.world;
  }
}

__global__ void Advance(Args args) { ++*reinterpret_cast<std::uint32_t*>(args.scratch); }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Summarise<<<kBlocks, kThreads, 0, stream>>>(args);
  Gradients<<<kBlocks, kThreads, 0, stream>>>(args);
  Advance<<<1, 1, 0, stream>>>(args);
}

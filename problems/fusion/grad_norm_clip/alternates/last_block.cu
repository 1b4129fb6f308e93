// The last block of a rank to finish its squares adds those of all blocks and sends one word to
// every rank; all blocks then wait for the words of the ranks.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t finished;  // blocks, over all calls
  float sums[kMaxBlocks];
  std::uint64_t totals[2][kMaxRanks];  // number of the call, bits of the sum
};

__global__ void __launch_bounds__(kThreads) Clip(Args args) {
  __shared__ float waves[kThreads / 32], of_ranks[kMaxRanks];
  __shared__ bool last;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  float sum = 0;
  for (std::int64_t i = first; i < args.n; i += stride) sum += args.grad[i] * args.grad[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) waves[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (const float wave : waves) all += wave;
    mine->sums[blockIdx.x] = all;
    last = FetchAddAcqRelGpu(&mine->finished, 1u) == call * gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x < args.world) {
    float all = 0;
    for (int b = 0; b < gridDim.x; ++b) all += mine->sums[b];
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(all);
    StoreRelaxedSys(&peer->totals[call % 2][args.rank], word);
  }
  if (threadIdx.x < args.world) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&mine->totals[call % 2][threadIdx.x]);
    } while (word >> 32 != call);
    of_ranks[threadIdx.x] = __uint_as_float(static_cast<std::uint32_t>(word));
  }
  __syncthreads();
  float total = 0;
  for (int r = 0; r < args.world; ++r) total += of_ranks[r];
  const float norm = sqrtf(total), limit = static_cast<float>(args.max_norm);
  const float scale = norm > limit ? limit / norm : 1;
  if (first == 0) args.norm[0] = norm;
  for (std::int64_t i = first; i < args.n; i += stride) args.clipped[i] = args.grad[i] * scale;
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + 4 * kThreads - 1) / (4 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Clip<<<blocks, kThreads, 0, stream>>>(args);
}

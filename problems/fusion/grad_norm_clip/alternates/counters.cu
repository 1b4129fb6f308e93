// By atomics: squares are integers, so every block adds its sum and one to the count, in one word,
// to a counter at every rank. Counters are never cleared: a block remembers what it saw last.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 512;
constexpr std::uint64_t kOne = std::uint64_t{1} << 32;  // sums below, counts above; both wrap

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint64_t seen[kMaxBlocks][2];  // by parity of the call
  std::uint64_t counters[2];
};

__global__ void __launch_bounds__(kThreads) Clip(Args args) {
  __shared__ std::uint32_t of_block;
  __shared__ float root;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  float sum = 0;
  for (std::int64_t i = first; i < args.n; i += stride) sum += args.grad[i] * args.grad[i];
  const std::uint32_t of_warp = __reduce_add_sync(~0u, static_cast<std::uint32_t>(sum));
  if (threadIdx.x % 32 == 0) atomicAdd(&of_block, of_warp);
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    AddRelaxedSys(&peer->counters[call % 2], kOne + of_block);
  }
  if (threadIdx.x == 0) {
    std::uint64_t* seen = &mine->seen[blockIdx.x][call % 2];
    std::uint64_t now;
    do {
      now = LoadRelaxedSys(&mine->counters[call % 2]);
    } while (now - *seen >> 32 != args.world * gridDim.x);
    root = sqrtf(static_cast<float>(static_cast<std::uint32_t>(now - *seen)));
    *seen = now;
    mine->calls[blockIdx.x] = call;
  }
  __syncthreads();
  const float norm = root, limit = static_cast<float>(args.max_norm);
  const float scale = norm > limit ? limit / norm : 1;
  if (first == 0) args.norm[0] = norm;
  for (std::int64_t i = first; i < args.n; i += stride) args.clipped[i] = args.grad[i] * scale;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + 4 * kThreads - 1) / (4 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Clip<<<blocks, kThreads, 0, stream>>>(args);
}

// Kernel by kernel: sums of blocks, the sum of the rank sent to all, a meeting, and the scaling.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls;
  std::uint32_t arrived[kMaxRanks];
  float of_ranks[2][kMaxRanks];  // by parity of the call
  float of_blocks[kBlocks];
};

__global__ void SumBlocks(Args args) {
  __shared__ float sums[kThreads];
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    sum += args.grad[i] * args.grad[i];
  }
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  if (threadIdx.x == 0) mine->of_blocks[blockIdx.x] = sums[0];
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  float sum = 0;
  for (int b = 0; b < kBlocks; ++b) sum += mine->of_blocks[b];
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    peer->of_ranks[call % 2][args.rank] = sum;
    StoreReleaseSys(&peer->arrived[args.rank], call);
    WaitAcquireSys(&mine->arrived[threadIdx.x], call);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->calls = call;
}

__global__ void Scale(Args args) {
  const Control* mine = reinterpret_cast<const Control*>(args.scratch);
  float total = 0;
  for (int r = 0; r < args.world; ++r) total += mine->of_ranks[mine->calls % 2][r];
  const float norm = sqrtf(total), limit = static_cast<float>(args.max_norm);
  const float scale = norm > limit ? limit / norm : 1;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  if (first == 0) args.norm[0] = norm;
  for (int i = first; i < args.n; i += kBlocks * kThreads) args.clipped[i] = args.grad[i] * scale;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  SumBlocks<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Scale<<<kBlocks, kThreads, 0, stream>>>(args);
}

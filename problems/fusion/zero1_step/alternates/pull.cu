// By pulling the gradients: every rank copies them to symmetric memory, the owner of a shard reads
// them from all ranks, makes the step, and pushes the results. The copy exists once: who has heard
// of all results knows that its gradients were read.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;
constexpr float kRate = 0.125f, kDecay = 0.03125f, kEpsilon = 0x1p-10f;

// Updates m and v, and returns the new parameter.
__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - kRate * (m / (sqrtf(v) + kEpsilon) + kDecay * p);
}

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks][kMaxRanks];  // 2 * call - 1: has staged; 2 * call: has stored
};

__device__ void Meet(const Args& args, std::uint32_t step) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->steps[blockIdx.x][args.rank], step);
    WaitAcquireSys(&mine->steps[blockIdx.x][threadIdx.x], step);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Step(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t n = args.n, first = blockIdx.x * kThreads + threadIdx.x;
  const std::int64_t stride = gridDim.x * kThreads;
  float* staged = reinterpret_cast<float*>(mine + 1);
  for (int s = 0; s < args.world; ++s) {
    for (std::int64_t i = first; i < n; i += stride) staged[s * n + i] = args.grad[s * n + i];
  }
  Meet(args, 2 * call - 1);
  for (std::int64_t i = first; i < n; i += stride) {
    float sum = 0, m = args.m[i], v = args.v[i];
    for (int r = 0; r < args.world; ++r) {
      const Control* peer = reinterpret_cast<const Control*>(args.scratch_peers[r]);
      sum += reinterpret_cast<const float*>(peer + 1)[args.rank * n + i];
    }
    const float next = Adam(args.param[i], sum, m, v);
    for (int r = 0; r < args.world; ++r) {
      args.params_peers[r][args.rank * n + i] = next;
      args.grad_sum_peers[r][args.rank * n + i] = sum;
    }
    args.new_m[i] = m;
    args.new_v[i] = v;
  }
  Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Step<<<blocks, kThreads, 0, stream>>>(args);
}

// By pulling: a rank leaves its new parameters in its own symmetric memory, by parity of the call,
// and publishes them; peers read them across the link. Who publishes call k + 2 has heard of the
// peers in call k + 1, so they have read call k.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t made[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) Update(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t n = args.n, set = call % 2 * n;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  float* made = reinterpret_cast<float*>(mine + 1) + set;
  for (std::int64_t i = first; i < n; i += stride) {
    const float g = args.grad[i], p = args.param[i];
    const float m = args.m[i] + 0.125f * (g - args.m[i]);
    const float old = fabsf(args.v[i]), v = old + 0.015625f * (g * g - old);
    args.new_m[i] = m;
    args.new_v[i] = v;
    made[i] = (1 - 0x1p-8f) * p - 0.125f * (m / (sqrtf(v) + 0x1p-10f));
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->made[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->made[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  for (int step = 0; step < args.world; ++step) {
    const int r = (args.rank + step) % args.world;
    const Control* peer = reinterpret_cast<const Control*>(args.scratch_peers[r]);
    const float* theirs = reinterpret_cast<const float*>(peer + 1) + set;
    for (std::int64_t i = first; i < n; i += stride) args.params[r * n + i] = theirs[i];
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Update<<<blocks, kThreads, 0, stream>>>(args);
}

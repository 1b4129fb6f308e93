// Kernel by kernel: the update of the shard into symmetric memory, a meeting, a gathering of all
// shards by reading them, and a meeting before the copy may change.
#include <allranks/flags.h>
using namespace allranks;

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];
};
constexpr int kBlocks = 32, kThreads = 256, kData = 256;

__global__ void Update(Args args) {
  float* staged = reinterpret_cast<float*>(args.scratch + kData);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    const float g = args.grad[i], p = args.param[i];
    const float m = 0.875f * args.m[i] + 0.125f * g;
    const float v = 0.984375f * fabsf(args.v[i]) + 0.015625f * g * g;
    args.new_m[i] = m;
    args.new_v[i] = v;
    staged[i] = p - 0.125f * (m / (sqrtf(v) + 0x1p-10f) + 0.03125f * p);
  }
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Gather(Args args) {
  for (int r = 0; r < args.world; ++r) {
    const float* staged = reinterpret_cast<const float*>(args.scratch_peers[r] + kData);
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
      args.params[r * args.n + i] = staged[i];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Update<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

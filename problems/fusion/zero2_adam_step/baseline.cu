// Kernel by kernel: gradients to where peers can read them, a meeting, the owner's sum and step, a
// meeting, a gathering of all shards by reading, and a last meeting.
#include <allranks/flags.h>
using namespace allranks;

constexpr float kRate = 0.125f, kDecay = 0.03125f, kEpsilon = 0x1p-10f;

// Updates m and v, and returns the new parameter.
__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - kRate * (m / (sqrtf(v) + kEpsilon) + kDecay * p);
}

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];
};
constexpr int kBlocks = 32, kThreads = 256, kData = 256;

// Gradients of all shards, and behind them new parameters of the own shard.
__device__ float* Staged(const Args& args, int rank) {
  return reinterpret_cast<float*>(args.scratch_peers[rank] + kData);
}

__global__ void Stage(Args args) {
  const std::int64_t all = args.world * args.n;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < all; i += kBlocks * kThreads) {
    Staged(args, args.rank)[i] = args.grad[i];
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

__global__ void Update(Args args) {
  float* results = Staged(args, args.rank) + args.world * args.n;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    float sum = 0, m = args.m[i], v = args.v[i];
    for (int r = 0; r < args.world; ++r) sum += Staged(args, r)[args.rank * args.n + i];
    results[i] = Adam(args.param[i], sum, m, v);
    args.new_m[i] = m;
    args.new_v[i] = v;
  }
}

__global__ void Gather(Args args) {
  for (int r = 0; r < args.world; ++r) {
    const float* results = Staged(args, r) + args.world * args.n;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
      args.params[r * args.n + i] = results[i];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Update<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

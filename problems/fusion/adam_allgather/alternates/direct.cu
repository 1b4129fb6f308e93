// Every thread updates four parameters in registers and stores them straight into `params` of all
// ranks, so nothing is staged and nothing copied.
//
// `params` of a peer may be written when the same block of that peer has reported that it has
// entered the call; these reports travel while the update is computed. A rank leaves when the
// blocks of all peers have reported that their parameters are here.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128;
constexpr float kRate = 0.125f, kDecay = 0.03125f, kEpsilon = 0x1p-10f;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t done[kMaxBlocks][kMaxRanks];     // by peer: the last call whose parameters are here
};

// Updates m and v, and returns the new parameter.
__device__ float Adam(float p, float g, float& m, float& v) {
  const float new_m = 0.875f * m + 0.125f * g, new_v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  const float q = new_m / (sqrtf(new_v) + kEpsilon);
  m = new_m;
  v = new_v;
  return p - kRate * (q + kDecay * p);
}

__device__ float4 At(const float* from, std::int64_t i) {
  return reinterpret_cast<const float4*>(from)[i];
}

__global__ void __launch_bounds__(kThreads) Update(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t vectors = args.n / 4, stride = gridDim.x * kThreads;

  if (threadIdx.x < args.world) {
    StoreReleaseSys(&theirs->entered[blockIdx.x][args.rank], call);
  }
  bool open = false;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i - threadIdx.x < vectors;
       i += stride) {
    float4 next;
    if (i < vectors) {
      const float4 p = At(args.param, i), g = At(args.grad, i);
      float4 m = At(args.m, i), v = At(args.v, i);
      next = {Adam(p.x, g.x, m.x, v.x), Adam(p.y, g.y, m.y, v.y), Adam(p.z, g.z, m.z, v.z),
              Adam(p.w, g.w, m.w, v.w)};
      reinterpret_cast<float4*>(args.new_m)[i] = m;
      reinterpret_cast<float4*>(args.new_v)[i] = v;
    }
    if (!open) {
      if (threadIdx.x < args.world) {
        WaitAcquireSys(&mine->entered[blockIdx.x][threadIdx.x], call);
      }
      __syncthreads();
      open = true;
    }
    for (int step = 0; step < args.world; ++step) {
      const int peer = (args.rank + step) % args.world;
      if (i >= vectors) break;
      reinterpret_cast<float4*>(args.params_peers[peer])[args.rank * vectors + i] = next;
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&theirs->done[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->done[blockIdx.x][threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Update<<<blocks, kThreads, 0, stream>>>(args);
}

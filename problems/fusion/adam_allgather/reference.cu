// Every thread updates four parameters in registers and stores them at all ranks. They go to
// symmetric memory, so that nobody has to ask whether a peer has entered the call, which would cost
// a fence and a trip before the first store; the copy to `params` is local and short. Block b of
// every rank has the same part of each shard and needs to hear of the blocks b only.
//
// There are two sets of shards, used in turn. A rank that writes call k + 2 has heard of all blocks
// of its peers in call k + 1, so their kernels of call k have ended.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128;
constexpr float kRate = 0.125f, kDecay = 0.03125f, kEpsilon = 0x1p-10f;

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t done[kMaxBlocks][kMaxRanks];  // by peer: the last call whose parameters are here
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
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t vectors = args.n / 4, stride = gridDim.x * kThreads;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  const std::int64_t set = call % 2 * args.world * vectors;
  float4* params = reinterpret_cast<float4*>(args.params);

  for (std::int64_t i = first; i < vectors; i += stride) {
    const float4 p = At(args.param, i), g = At(args.grad, i);
    float4 m = At(args.m, i), v = At(args.v, i);
    const float4 next = {Adam(p.x, g.x, m.x, v.x), Adam(p.y, g.y, m.y, v.y),
                         Adam(p.z, g.z, m.z, v.z), Adam(p.w, g.w, m.w, v.w)};
    for (int step = 1; step < args.world; ++step) {
      const int peer = (args.rank + step) % args.world;
      Control* control = reinterpret_cast<Control*>(args.scratch_peers[peer]);
      reinterpret_cast<float4*>(control + 1)[set + args.rank * vectors + i] = next;
    }
    params[args.rank * vectors + i] = next;
    reinterpret_cast<float4*>(args.new_m)[i] = m;
    reinterpret_cast<float4*>(args.new_v)[i] = v;
  }
  __syncthreads();  //@stored
  if (threadIdx.x < args.world) {
    Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&theirs->done[blockIdx.x][args.rank], call);  //@tell
    WaitAcquireSys(&mine->done[blockIdx.x][threadIdx.x], call);   //@arrived
  }
  __syncthreads();  //@heard

  const float4* staged = reinterpret_cast<const float4*>(mine + 1) + set;
  for (std::int64_t i = first; i < vectors; i += stride) {
    float4 shard[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r < args.world && r != args.rank) shard[r] = staged[r * vectors + i];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world && r != args.rank) params[r * vectors + i] = shard[r];
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Update<<<blocks, kThreads, 0, stream>>>(args);
}

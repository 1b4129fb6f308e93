// By pushing, block by block: block b of every rank has the same vectors of each shard and needs to
// hear of the blocks b only, so that blocks are the chunks of a pipeline. A block writes its
// gradients of shard s into a slot at rank s; when those of all ranks are here, it adds them up in
// the order of ranks, makes the step of the optimizer in registers, and stores sums and new
// parameters straight into the outputs of all ranks.
//
// Outputs of a peer are open once its gradients have come: it is inside the call, and cannot leave
// before it has heard of our second store. Slots exist once: a rank leaves call k after it has
// heard of the owner's second store, when the owner has read them.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128;
constexpr float kRate = 0.125f, kDecay = 0.03125f, kEpsilon = 0x1p-10f;

// Updates m and v, and returns the new parameter.
__device__ float Adam(float p, float g, float& m, float& v) {
  m = 0.875f * m + 0.125f * g, v = 0.984375f * fabsf(v) + 0.015625f * g * g;
  return p - kRate * (m / (sqrtf(v) + kEpsilon) + kDecay * p);
}

struct alignas(16) Control {
  std::uint32_t calls[kMaxBlocks];
  // By peer: the last call whose gradients, and whose sums and new parameters, are here.
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];
};

__device__ float4 At(const float* from, std::int64_t i) {
  return reinterpret_cast<const float4*>(from)[i];
}
__device__ float4& At(float* to, std::int64_t i) { return reinterpret_cast<float4*>(to)[i]; }

__global__ void __launch_bounds__(kThreads) Step(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t vectors = args.n / 4, stride = gridDim.x * kThreads;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;

  for (std::int64_t i = first; i < vectors; i += stride) {
    float4 part[kMaxRanks];
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {  // all on their way before the first is needed
      const int owner = (args.rank + step) % args.world;
      if (step < args.world) part[step] = At(args.grad, owner * vectors + i);
    }
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step >= args.world) break;
      const int owner = (args.rank + step) % args.world;
      Control* control = reinterpret_cast<Control*>(args.scratch_peers[owner]);
      reinterpret_cast<float4*>(control + 1)[args.rank * vectors + i] = part[step];
    }
  }
  __syncthreads();  //@scattered
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&theirs->scattered[blockIdx.x][args.rank], call);  //@tell_first
    WaitAcquireSys(&mine->scattered[blockIdx.x][threadIdx.x], call);   //@wait_first
  }
  __syncthreads();  //@heard

  const float* slots = reinterpret_cast<const float*>(mine + 1);
  for (std::int64_t i = first; i < vectors; i += stride) {
    const float4 p = At(args.param, i);
    float4 m = At(args.m, i), v = At(args.v, i), part[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      part[r] =
          r == args.rank ? At(args.grad, args.rank * vectors + i) : At(slots, r * vectors + i);
    }
    float4 sum = part[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= args.world) break;  //@ranks
      sum = {sum.x + part[r].x, sum.y + part[r].y, sum.z + part[r].z, sum.w + part[r].w};
    }
    const float4 next = {Adam(p.x, sum.x, m.x, v.x), Adam(p.y, sum.y, m.y, v.y),
                         Adam(p.z, sum.z, m.z, v.z), Adam(p.w, sum.w, m.w, v.w)};
    for (int step = 0; step < args.world; ++step) {
      const int peer = (args.rank + step) % args.world;
      At(args.grad_sum_peers[peer], args.rank * vectors + i) = sum;
      At(args.params_peers[peer], args.rank * vectors + i) = next;
    }
    At(args.new_m, i) = m;
    At(args.new_v, i) = v;
  }
  __syncthreads();  //@gathered
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&theirs->gathered[blockIdx.x][args.rank], call);  //@tell_second
    WaitAcquireSys(&mine->gathered[blockIdx.x][threadIdx.x], call);   //@wait_second
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Step<<<blocks, kThreads, 0, stream>>>(args);
}

// Without shared memory: threads carry vectors of 16 bytes in registers, one for each rank at a
// time. One counter per block, to which every rank adds one when it enters and one when its data
// have come. No rank can be a call ahead of another, so world * (2 * calls + 1) says that all have
// entered.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks], counts[kMaxBlocks];
};

__device__ void Meet(const Args& args, std::uint32_t complete) {
  __syncthreads();  //@before
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    AddReleaseSys(&peer->counts[blockIdx.x], 1u);           //@tell
    WaitAcquireSys(&mine->counts[blockIdx.x], complete);  //@wait
  }
  __syncthreads();  //@after
}

__global__ void __launch_bounds__(kThreads) Exchange(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t calls = mine->calls[blockIdx.x];
  const int world = args.world, experts = args.experts;
  const std::int64_t vectors = args.n / 4;
  Meet(args, world * (2 * calls + 1));
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < experts * vectors; i += gridDim.x * kThreads) {
    const std::int64_t expert = i / vectors, at = i % vectors;
    uint4 v[kMaxRanks];
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      const int r = (args.rank + step) % world;
      const uint4* in = reinterpret_cast<const uint4*>(args.in);
      if (step < world) v[step] = in[(r * experts + expert) * vectors + at];
    }
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= world) break;
      uint4* out = reinterpret_cast<uint4*>(args.out_peers[(args.rank + step) % world]);
      out[(expert * world + args.rank) * vectors + at] = v[step];
    }
  }
  Meet(args, world * (2 * calls + 2));
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = calls + 1;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.experts * args.n / 4 + kThreads - 1) / kThreads;
  Exchange<<<needed < kMaxBlocks ? needed : kMaxBlocks, kThreads, 0, stream>>>(args);
}

// By reading: a rank fetches its chunks out of the peers' `in` once they are inside the call,
// and lets them leave when it has them.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxBlocks = 64;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call it has entered
  std::uint32_t fetched[kMaxBlocks][kMaxRanks];  // by peer: the last call it has read from here
};

__global__ void __launch_bounds__(kThreads) AllToAll(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&peer->entered[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->entered[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  const std::int64_t quads = args.quads;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < quads; i += gridDim.x * kThreads) {
    uint4 v[kMaxRanks];
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= args.world) continue;
      const int source = (args.rank + step) % args.world;
      v[step] = reinterpret_cast<const uint4*>(args.in_peers[source])[args.rank * quads + i];
    }
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= args.world) continue;
      const int source = (args.rank + step) % args.world;
      reinterpret_cast<uint4*>(args.out)[source * quads + i] = v[step];
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&peer->fetched[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->fetched[blockIdx.x][threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.quads + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  AllToAll<<<blocks, kThreads, 0, stream>>>(args);
}

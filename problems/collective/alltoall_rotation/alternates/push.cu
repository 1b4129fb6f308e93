// Straight into the peers' `out`. Block b of a rank deals with the blocks b of the others: each
// says that it has entered the call, so that its `out` is open, and later that its words have
// arrived; nobody leaves before it has heard that from all.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxBlocks = 64;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call it has entered
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // the same of its words
};

__global__ void __launch_bounds__(kThreads) AllToAll(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int rank = args.rank, world = args.world;
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % world]);
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->entered[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->entered[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  const std::int64_t quads = args.quads;
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < quads; i += gridDim.x * kThreads) {
    uint4 v[kMaxRanks];
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step < world) v[step] = in[(rank + step) % world * quads + i];
    }
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= world) continue;
      uint4* out = reinterpret_cast<uint4*>(args.out_peers[(rank + step) % world]);
      out[rank * quads + i] = v[step];
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->arrived[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->arrived[blockIdx.x][threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.quads + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  AllToAll<<<blocks, kThreads, 0, stream>>>(args);
}

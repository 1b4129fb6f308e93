// Straight into the peers' `out`, which is open while its owner is inside the call. Block b of a
// rank deals with the blocks b of the others: they meet before and after their stores.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxBlocks = 64;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call it has entered
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call of which all is here
};

__global__ void __launch_bounds__(kThreads) AllToAll(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int rank = args.rank, world = args.world;
  const int width = static_cast<int>(args.cols / 8), part = static_cast<int>(args.tokens) * width;
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->entered[blockIdx.x][rank], call);
    WaitAcquireSys(&mine->entered[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < part; i += gridDim.x * kThreads) {
    uint4 v[kMaxRanks];
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= world) continue;
      v[step] = in[(i / width * world + (rank + step) % world) * width + i % width];
    }
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {
      if (step >= world) continue;
      reinterpret_cast<uint4*>(args.out_peers[(rank + step) % world])[rank * part + i] = v[step];
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
  const std::int64_t needed = (args.tokens * args.cols / 8 + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  AllToAll<<<blocks, kThreads, 0, stream>>>(args);
}

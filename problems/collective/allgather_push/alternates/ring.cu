// A ring: in step s every rank passes the row of rank - s, which it has by then, on to its right
// neighbour. Only neighbours exchange flags. The left one is told that we have entered; a rank
// leaves when all rows are here, and its right neighbour's flags only grow.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 128;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks];          // written by the right neighbour
  std::uint32_t rows[kMaxBlocks][kMaxRanks];  // written by the left neighbour, by step
};

__global__ void __launch_bounds__(kThreads) AllGather(Args args) {
  const int world = args.world, block = blockIdx.x;
  const int right = (args.rank + 1) % world, left = (args.rank + world - 1) % world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* to = reinterpret_cast<Control*>(args.scratch_peers[right]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&reinterpret_cast<Control*>(args.scratch_peers[left])->entered[block], call);
    WaitAcquireSys(&mine->entered[block], call);
  }
  __syncthreads();
  const std::int64_t vectors = args.n / 4;
  uint4* here = reinterpret_cast<uint4*>(args.out);
  uint4* there = reinterpret_cast<uint4*>(args.out_peers[right]);
  for (int step = 0; step < world; ++step) {
    const std::int64_t row = (args.rank + world - step) % world * vectors;
    const uint4* from = step == 0 ? reinterpret_cast<const uint4*>(args.in) : here + row;
    const std::int64_t first = block * kThreads + threadIdx.x;
    for (std::int64_t i = first; i < vectors; i += gridDim.x * kThreads) {
      const uint4 v = from[i];
      if (step == 0) here[row + i] = v;
      if (step + 1 < world) there[row + i] = v;
    }
    __syncthreads();
    if (step + 1 < world && threadIdx.x == 0) {
      StoreReleaseSys(&to->rows[block][step], call);
      WaitAcquireSys(&mine->rows[block][step], call);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllGather<<<blocks, kThreads, 0, stream>>>(args);
}

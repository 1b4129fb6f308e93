// Columns leave the rows of `in` as vectors of eight numbers and land in the receiver's symmetric
// memory, where the order is that of its `out`. That memory is open at any time, so nobody waits
// for peers to enter the call. Block b of every rank has the same vectors of each part: it needs to
// hear of the blocks b only, and then moves what came to `out`.
//
// Two sets of slots take turns. A peer writes into the set of call k again in call k + 2, after it
// has heard of this rank in call k + 1; this rank told of that after it had read all of call k.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxBlocks = 64;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose part is here
};

// The rank `step` places behind: in each step every rank receives from one other.
__device__ int Turn(int rank, int step, int world) {
  const int r = rank + step;
  return r < world ? r : r - world;
}

__global__ void __launch_bounds__(kThreads) AllToAll(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world;
  const int width = static_cast<int>(args.cols / 8), part = static_cast<int>(args.tokens) * width;
  const std::int64_t set = sizeof(Control) + sizeof(uint4) * (call % 2 * world * part);
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  uint4* out = reinterpret_cast<uint4*>(args.out);
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;

  for (int i = first; i < part; i += stride) {
    const int row = i / width * world * width + i % width;
    uint4 v[kMaxRanks];
#pragma unroll
    for (int step = 0; step < kMaxRanks; ++step) {  // all on their way before the first is needed
      if (step < world) v[step] = in[row + Turn(rank, step, world) * width];
    }
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step >= world) continue;
      const int peer = Turn(rank, step, world);
      reinterpret_cast<uint4*>(args.scratch_peers[peer] + set)[rank * part + i] = v[step];
    }
    out[rank * part + i] = v[0];
  }
  __syncthreads();  //@sent
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->arrived[blockIdx.x][rank], call);        //@tell
    WaitAcquireSys(&mine->arrived[blockIdx.x][threadIdx.x], call);  //@wait
  }
  __syncthreads();  //@arrived
  const uint4* slots = reinterpret_cast<const uint4*>(args.scratch + set);
  for (int i = first; i < part; i += stride) {
    uint4 v[kMaxRanks];
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step < world) v[step] = slots[Turn(rank, step, world) * part + i];
    }
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step < world) out[Turn(rank, step, world) * part + i] = v[step];
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.tokens * args.cols / 8 + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  AllToAll<<<blocks, kThreads, 0, stream>>>(args);
}

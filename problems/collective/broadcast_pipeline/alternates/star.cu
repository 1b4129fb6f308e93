// A star: the root serves everybody, in vectors of 16 bytes. Peers tell the root that they have
// entered, and wait for its flag, both by block.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t stored[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) Broadcast(Args args) {
  const int block = blockIdx.x, thread = threadIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  if (args.rank == args.root) {
    if (thread < args.world && thread != args.rank) {
      WaitAcquireSys(&mine->entered[block][thread], call);
    }
    __syncthreads();
    const std::int64_t vectors = args.n / 4, first = block * kThreads + thread;
    for (std::int64_t i = first; i < vectors; i += gridDim.x * kThreads) {
      const uint4 v = reinterpret_cast<const uint4*>(args.in)[i];
      for (int r = 0; r < args.world; ++r) reinterpret_cast<uint4*>(args.out_peers[r])[i] = v;
    }
    __syncthreads();
    if (thread < args.world) {
      StoreReleaseSys(&reinterpret_cast<Control*>(args.scratch_peers[thread])->stored[block], call);
    }
  } else if (thread == 0) {
    Control* root = reinterpret_cast<Control*>(args.scratch_peers[args.root]);
    StoreReleaseSys(&root->entered[block][args.rank], call);
    WaitAcquireSys(&mine->stored[block], call);
  }
  __syncthreads();
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Broadcast<<<blocks, kThreads, 0, stream>>>(args);
}

// Ordinary stores of 16 bytes by many threads: a block of the root serves one peer after the other,
// beginning with another one than its neighbours, and tells each when its vectors are stored.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t entered[kMaxBlocks][kMaxRanks];
  std::uint64_t arrived[kMaxBlocks];
  std::uint32_t calls[kMaxBlocks];
};

__global__ void __launch_bounds__(kThreads) Scatter(Args args) {
  const int block = blockIdx.x, thread = threadIdx.x, world = args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  if (thread == 0) {
    Control* root = reinterpret_cast<Control*>(args.scratch_peers[args.root]);
    StoreReleaseSys(&root->entered[block][args.rank], call);
  }
  if (args.rank == args.root) {
    if (thread < world) WaitAcquireSys(&mine->entered[block][thread], call);
    __syncthreads();
    for (int step = 0; step < world; ++step) {
      const int r = (block + step) % world;
      std::int64_t begin = 0;
      for (int i = 0; i < r; ++i) begin += args.counts[i];
      const std::int64_t quads = args.width / 4, vectors = args.counts[r] * quads;
      const uint4* from = reinterpret_cast<const uint4*>(args.in) + begin * quads;
      uint4* to = reinterpret_cast<uint4*>(args.out_peers[r]);
      const std::int64_t first = block * kThreads + thread;
      for (std::int64_t i = first; i < vectors; i += gridDim.x * kThreads) to[i] = from[i];
    }
    __syncthreads();
    if (thread < world) {
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread]);
      const std::uint64_t word = std::uint64_t{call} << 32 | args.counts[thread];
      StoreReleaseSys(&peer->arrived[block], word);
    }
  }
  __syncthreads();
  if (thread == 0) {
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->arrived[block]);
    } while (word >> 32 != call);
    if (block == 0) *args.length = static_cast<std::int32_t>(word);
    mine->calls[block] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.rows * args.width / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Scatter<<<blocks, kThreads, 0, stream>>>(args);
}

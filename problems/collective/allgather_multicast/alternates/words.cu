// Word by word, so that alignment does not matter, and with flags of their own for entry and
// arrival, stored to each peer by a thread of its own.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 512;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];
  std::uint32_t stored[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) AllGather(Args args) {
  const int block = blockIdx.x, thread = threadIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (thread < args.world) {
    StoreReleaseSys(&peer->entered[block][args.rank], call);
    WaitAcquireSys(&mine->entered[block][thread], call);
  }
  __syncthreads();
  std::uint32_t* all = args.out_multicast + args.rank * args.n;
  const std::int64_t first = block * kThreads + thread;
  for (std::int64_t i = first; i < args.n; i += gridDim.x * kThreads) {
    asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" ::"l"(all + i), "r"(args.in[i])
                 : "memory");
  }
  __syncthreads();
  if (thread < args.world) {
    StoreReleaseSys(&peer->stored[block][args.rank], call);
    WaitAcquireSys(&mine->stored[block][thread], call);
  }
  __syncthreads();
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllGather<<<blocks, kThreads, 0, stream>>>(args);
}

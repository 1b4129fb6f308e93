// Multicast for the data only: votes travel in flags of 64 bits, one per pair of ranks and block,
// beside the number of the call, in two sets in turn; the root tells each peer by a flag of its
// own.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 512;

struct Control {
  std::uint64_t votes[2][kMaxBlocks][kMaxRanks];
  std::uint32_t stored[kMaxBlocks];
  std::uint32_t calls[kMaxBlocks];
};

__global__ void __launch_bounds__(kThreads) Broadcast(Args args) {
  __shared__ int votes[kMaxRanks];
  const int block = blockIdx.x, thread = threadIdx.x, quads = args.n / 4;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (thread < args.world) {
    StoreReleaseSys(&peer->votes[call % 2][block][args.rank],
                    std::uint64_t{call} << 32 | *args.vote);
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->votes[call % 2][block][thread]);
    } while (word >> 32 != call);
    votes[thread] = static_cast<int>(word);
  }
  __syncthreads();
  int sum = 0;
  for (int r = 0; r < args.world; ++r) sum += votes[r];
  if (args.rank == sum % args.world) {
    const float4* in = reinterpret_cast<const float4*>(args.in);
    for (int i = block * kThreads + thread; i < quads; i += gridDim.x * kThreads) {
      const float4 v = in[i];
      asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(
                       args.out_multicast + 4 * i),
                   "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                   : "memory");
    }
    __syncthreads();
    if (thread < args.world) StoreReleaseSys(&peer->stored[block], call);
  } else if (thread == 0) {
    WaitAcquireSys(&mine->stored[block], call);
  }
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Broadcast<<<blocks, kThreads, 0, stream>>>(args);
}

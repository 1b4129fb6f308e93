// Every rank adds its arrival and its vote to one counter on all devices at once: arrivals in the
// lower half of a word, votes in the upper one. When all have arrived, the word names the root and
// says that every `out` is open. The root stores each vector once and the switch delivers it to
// all; then it adds one to a second counter, for which the others wait. Nobody else is awaited.
//
// A rank that is through may vote in the next call before a slower one has read this call's word,
// so there are two words, used in turn. It can vote in the call after that only when the slower one
// has arrived in the next, and has thus read. Counters are never reset; `before` is what this rank
// saw in a word two calls ago. Block b meets the blocks b of the other ranks only.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32;
constexpr int kThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint64_t entered[kMaxBlocks][2];  // by turn: votes and arrivals of all calls
  std::uint32_t before[kMaxBlocks][2];   // own: votes when this turn's last call was complete
  std::uint32_t stored[kMaxBlocks];      // calls whose data are here
  std::uint32_t calls[kMaxBlocks];       // own: that this block has completed
};

__device__ void StoreAll(std::uint32_t* all, uint4 v) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(all),
               "f"(__uint_as_float(v.x)), "f"(__uint_as_float(v.y)), "f"(__uint_as_float(v.z)),
               "f"(__uint_as_float(v.w))
               : "memory");
}

__global__ void __launch_bounds__(kThreads) Broadcast(Args args) {
  __shared__ int root;
  const int block = blockIdx.x, quads = args.n / 4;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* all = reinterpret_cast<Control*>(args.scratch_multicast);
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch
  const int turn = call % 2;
  if (threadIdx.x == 0) {
    const std::uint64_t share = std::uint64_t(*args.vote) << 32 | 1;
    asm volatile(
        "multimem.red.release.sys.global.add.u64 [%0], %1;" ::"l"(&all->entered[block][turn]),
        "l"(share)
        : "memory");  //@arrive
    asm volatile("fence.proxy.alias;" ::: "memory");
    const std::uint32_t complete = (call + 1) / 2 * args.world;
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->entered[block][turn]);  //@observe
    } while (static_cast<std::uint32_t>(word) < complete);
    const std::uint32_t before = mine->before[block][turn];
    const std::uint32_t votes = static_cast<std::uint32_t>(word >> 32) - before;
    mine->before[block][turn] = before + votes;
    root = votes % args.world;
  }
  __syncthreads();
  if (args.rank == root) {
    const uint4* in = reinterpret_cast<const uint4*>(args.in);
    for (int i = block * kThreads + threadIdx.x; i < quads; i += gridDim.x * kThreads) {
      StoreAll(args.out_multicast + 4 * i, in[i]);
    }
    __syncthreads();  //@stored
    if (threadIdx.x == 0) {
      asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(&all->stored[block])
                   : "memory");  //@publish
    }
  } else if (threadIdx.x == 0) {
    WaitAcquireSys(&mine->stored[block], call);  //@wait
  }
  if (threadIdx.x == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 4 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Broadcast<<<blocks, kThreads, 0, stream>>>(args);
}

// Every rank tells all others its vote, in a word that carries the number of the call. Who has the
// words of all knows the root, and that every `out` is open. The root stores each vector once and
// the switch delivers it to all; then it sends the number of the call to all, for which the others
// wait. Nobody else is awaited.
//
// A rank that is through may vote in the next call before a slower one has read this call's words,
// so there are two sets of words, used in turn. It can vote in the call after that only when the
// slower one has voted in the next, and has thus read. Block b meets the blocks b of the other
// ranks only. Words go to each rank by themselves: a counter on all devices at once, to which the
// switch adds, would cost a trip through it.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32;
constexpr int kThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint64_t entered[kMaxBlocks][2][kMaxRanks];  // by turn and peer: call, vote
  std::uint32_t stored[kMaxBlocks];                 // the last call whose data are here
  std::uint32_t calls[kMaxBlocks];                  // own: that this block has completed
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
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch
  const int turn = call % 2, stride = gridDim.x * kThreads;
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  int i = block * kThreads + threadIdx.x;
  uint4 v = i < quads ? in[i] : uint4{};  // on its way while the others vote
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x;
    int vote = 0;
    if (lane < args.world) {
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane]);
      std::uint64_t word = std::uint64_t{call} << 32 | *args.vote;
      StoreReleaseSys(&peer->entered[block][turn][args.rank], word);  //@arrive
      do {
        word = LoadAcquireSys(&mine->entered[block][turn][lane]);  //@observe
      } while (word >> 32 != call);
      vote = static_cast<int>(word);
    }
    const int votes = __reduce_add_sync(~0u, vote);
    if (lane == 0) root = votes % args.world;
  }
  __syncthreads();                                  //@known
  asm volatile("fence.proxy.alias;" ::: "memory");  // outputs are open by ordinary addresses
  if (args.rank == root) {
    for (; i < quads; i += stride) {
      StoreAll(args.out_multicast + 4 * i, v);
      if (i + stride < quads) v = in[i + stride];
    }
    __syncthreads();  //@stored
    if (threadIdx.x < args.world) {
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
      StoreReleaseSys(&peer->stored[block], call);  //@publish
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

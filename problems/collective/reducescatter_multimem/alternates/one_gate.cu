#include <allranks/flags.h>

// The device meets its peers as a whole: block 0 tells and waits, then opens a gate for its other
// blocks; the last block that has read tells the peers. Flags do not depend on the grid.
using namespace allranks;
constexpr int kBlocks = 16, kThreads = 256;

struct Control {
  std::uint32_t calls, gate, done;  // done: blocks of all calls that have read
  std::uint32_t entered[kMaxRanks], read[kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) ReduceScatter(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls + 1;
  __shared__ bool last;
  if (blockIdx.x == 0) {
    if (threadIdx.x < args.world) {
      StoreReleaseSys(&peer->entered[args.rank], call);
      WaitAcquireSys(&mine->entered[threadIdx.x], call);
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseGpu(&mine->gate, call);
  }
  if (threadIdx.x == 0) WaitAcquireGpu(&mine->gate, call);
  __syncthreads();
  asm volatile("fence.proxy.alias;" ::: "memory");

  const int pairs = args.n / 2, shard = (pairs / 4 + args.world - 1) / args.world * 4;
  const auto* in = reinterpret_cast<const std::uint32_t*>(args.in_multicast) + args.rank * shard;
  const int valid = min(shard, pairs - args.rank * shard);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < valid; i += kBlocks * kThreads) {
    std::uint32_t sum;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.bf16x2 %0, [%1];"
                 : "=r"(sum)
                 : "l"(in + i)
                 : "memory");
    reinterpret_cast<std::uint32_t*>(args.out)[i] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) last = FetchAddAcqRelGpu(&mine->done, 1u) == call * kBlocks - 1;
  __syncthreads();
  if (!last) return;
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&peer->read[args.rank], call);
    WaitAcquireSys(&mine->read[threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  ReduceScatter<<<kBlocks, kThreads, 0, stream>>>(args);
}

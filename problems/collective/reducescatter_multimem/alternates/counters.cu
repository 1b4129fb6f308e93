#include <allranks/flags.h>

// Meetings in the switch: multimem.red adds one to a counter on all devices at once, and each
// device waits for its own. Counters are never reset: meeting m is complete at world * m. They are
// changed by the multicast address and read by the own; fence.proxy.alias is between.
using namespace allranks;
constexpr int kMaxBlocks = 16, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks], arrived[kMaxBlocks];
};

__device__ void FenceAliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  __syncthreads();
  if (threadIdx.x == 0) {
    std::uint32_t* all = reinterpret_cast<Control*>(args.scratch_multicast)->arrived + blockIdx.x;
    asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(all) : "memory");
    FenceAliases();
    std::uint32_t* own = reinterpret_cast<Control*>(args.scratch)->arrived + blockIdx.x;
    WaitAcquireSys(own, meeting * args.world);
  }
  __syncthreads();
  FenceAliases();
}

__global__ void __launch_bounds__(kThreads) ReduceScatter(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int vectors = args.n / 8, shard = (vectors + args.world - 1) / args.world;
  const uint4* in = reinterpret_cast<const uint4*>(args.in_multicast);
  Meet(args, 2 * call - 1);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < shard; i += gridDim.x * kThreads) {
    const int at = args.rank * shard + i;
    if (at >= vectors) break;
    uint4 v;
    asm volatile(
        "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(in + at)
        : "memory");
    reinterpret_cast<uint4*>(args.out)[i] = v;
  }
  Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = (args.n / 8 + args.world * kThreads - 1) / (args.world * kThreads);
  ReduceScatter<<<min(needed, kMaxBlocks), kThreads, 0, stream>>>(args);
}

// Every warp has a pipeline of its own and takes segments in turn. Bulk copies move 16 bytes at
// aligned addresses, so a segment comes with the words around it that complete its first and last
// 16 bytes: `full` of a stage expects exactly these bytes, none for an empty segment. From shared
// memory lanes store what was asked for, shifted to where rows of `out` begin. There are three
// stages: two segments are on their way while one is stored.
//
// A peer's pool is open from its entry flag on; it leaves when all have told that they have read.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kWarps = 4, kStages = 3, kWidth = 512;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t done[kMaxBlocks][kMaxRanks];     // by peer: the last call in which it has read
};
struct Pipeline {
  alignas(16) std::uint32_t stages[kStages][kWidth + 4];
  std::uint64_t full[kStages];
};

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

// Of segment s: its words and those around it, up to multiples of four.
__device__ void Load(const Args& args, int s, std::uint32_t* stage, std::uint64_t* full) {
  const std::uint32_t start = args.start[s], length = args.length[s], first = start / 4 * 4;
  const std::uint32_t bytes = length == 0 ? 0 : 4 * ((start + length + 3) / 4 * 4 - first);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(full)),
               "r"(bytes)
               : "memory");
  if (bytes == 0) return;
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(stage)),
      "l"(args.pool_peers[args.source[s]] + first), "r"(bytes), "r"(Shared(full))
      : "memory");
}

__device__ void AwaitLoad(std::uint64_t* full, std::uint32_t parity) {
  std::uint32_t ready = 0;
  while (ready == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(ready)
        : "r"(Shared(full)), "r"(parity)
        : "memory");
  }
}

__global__ void __launch_bounds__(32 * kWarps) Gather(Args args) {
  __shared__ Pipeline pipelines[kWarps];
  const int block = blockIdx.x, thread = threadIdx.x, lane = thread % 32;
  const int first = block * kWarps + thread / 32, stride = gridDim.x * kWarps, m = args.m;
  Pipeline& pipe = pipelines[thread / 32];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch

  if (thread < args.world) StoreReleaseSys(&peer->entered[block][args.rank], call);  //@enter
  if (lane == 0) {
    for (int i = 0; i < kStages; ++i) {
      const std::uint32_t full = Shared(&pipe.full[i]);
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  if (thread < args.world) WaitAcquireSys(&mine->entered[block][thread], call);  //@entered
  __syncthreads();                                                               //@open
  if (lane == 0) {
    for (int i = 0; i < kStages - 1 && first + i * stride < m; ++i) {
      Load(args, first + i * stride, pipe.stages[i], &pipe.full[i]);
    }
  }
  for (int i = 0, s = first; s < m; ++i, s += stride) {
    const int ahead = s + (kStages - 1) * stride, free = (i + kStages - 1) % kStages;
    if (lane == 0 && ahead < m) Load(args, ahead, pipe.stages[free], &pipe.full[free]);
    const int length = args.length[s];
    const std::uint32_t* words = pipe.stages[i % kStages] + args.start[s] % 4;
    std::uint32_t* out = args.out + std::int64_t{s} * args.width;
    AwaitLoad(&pipe.full[i % kStages], i / kStages % 2);  //@loaded
    for (int k = 4 * lane; k + 4 <= length; k += 128) {
      const uint4 v = {words[k], words[k + 1], words[k + 2], words[k + 3]};
      *reinterpret_cast<uint4*>(out + k) = v;
    }
    const int left = length / 4 * 4 + lane;
    if (left < length) out[left] = words[left];  //@tail
    __syncwarp();                                //@stored
  }
  __syncthreads();  //@all_read
  if (thread < args.world) {
    StoreReleaseSys(&peer->done[block][args.rank], call);  //@tell
    WaitAcquireSys(&mine->done[block][thread], call);      //@wait
  }
  if (thread == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.m + kWarps - 1) / kWarps);
  Gather<<<needed < kMaxBlocks ? needed : kMaxBlocks, 32 * kWarps, 0, stream>>>(args);
}

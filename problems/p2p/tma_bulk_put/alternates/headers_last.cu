// Pages leave as they came: one lane of each warp moves chunks by bulk copies, two at a time. When
// all are complete at the receiver, threads store the stamped headers over the old ones.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 16, kPage = 512, kChunk = 8 * kPage;  // words

struct Control {
  std::uint32_t calls[kMaxBlocks], entered[kMaxBlocks], done[kMaxBlocks];
};

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

__global__ void __launch_bounds__(32) Put(Args args) {
  __shared__ __align__(128) std::uint32_t chunks[2][kChunk];
  __shared__ std::uint64_t full[2];
  const int block = blockIdx.x, lane = threadIdx.x, next = (args.rank + 1) % args.world;
  const int before = (args.rank + args.world - 1) % args.world, n = args.n, whole = n / 4 * 4;
  const int first = block * kChunk, stride = gridDim.x * kChunk;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* receiver = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* sender = reinterpret_cast<Control*>(args.scratch_peers[before]);
  std::uint32_t* out = args.out_peers[next];
  const std::uint32_t call = mine->calls[block] + 1;
  if (lane == 0) {
    StoreReleaseSys(&sender->entered[block], call);
    for (auto& one : full) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&one)) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    WaitAcquireSys(&mine->entered[block], call);
    // In step i chunk i is asked for, and chunk i - 1 goes on.
    for (int i = 0, at = first; at - stride < whole; ++i, at += stride) {
      if (at < whole) {
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(&full[i % 2])),
            "r"(4 * min(kChunk, whole - at))
            : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
            "[%3];" ::"r"(Shared(chunks[i % 2])),
            "l"(args.in + at), "r"(4 * min(kChunk, whole - at)), "r"(Shared(&full[i % 2]))
            : "memory");
      }
      if (i == 0) continue;
      std::uint32_t ready = 0;
      while (ready == 0) {
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
            "selp.u32 %0, 1, 0, p; }"
            : "=r"(ready)
            : "r"(Shared(&full[(i - 1) % 2])), "r"((i - 1) / 2 % 2)
            : "memory");
      }
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + at - stride),
          "r"(Shared(chunks[(i - 1) % 2])), "r"(4 * min(kChunk, whole - at + stride))
          : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  __syncwarp();
  for (int at = first; at < n; at += stride) {
    const int page = at + lane * kPage;
    if (page < min(n, at + kChunk)) out[page] = args.in[page] + args.stamps[page / kPage];
  }
  const int left = whole + lane;
  if (block == 0 && left < n && left % kPage != 0) out[left] = args.in[left];
  __syncwarp();
  if (lane == 0) {
    StoreReleaseSys(&receiver->done[block], call);
    WaitAcquireSys(&mine->done[block], call);
    mine->calls[block] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + kChunk - 1) / kChunk;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Put<<<blocks, 32, 0, stream>>>(args);
}

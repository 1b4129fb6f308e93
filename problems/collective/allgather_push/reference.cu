// A block is one warp, and its lane p serves peer p: it waits until that peer has entered, copies
// the block's chunks of the shard into the peer's `out`, tells it, and waits for the chunks of the
// same block of that peer. Bulk copies move the bytes: a chunk is loaded into shared memory once,
// while the peers enter, and stored from there to all ranks in large packets.
//
// A peer's `out` is open from its entry flag on, and it cannot leave before our arrival flag.
// Flags hold the number of the last call; they only grow, so nothing is ever reset.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16;
constexpr int kChunk = 2048;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose data are here
};

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

__device__ void Load(std::uint8_t* chunk, const std::uint8_t* from, int size, std::uint64_t* full) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(full)), "r"(size)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(chunk)),
      "l"(from), "r"(size), "r"(Shared(full))
      : "memory");
}

__device__ void AwaitLoad(std::uint64_t* full, std::uint32_t parity) {
  std::uint32_t ready = 0;
  while (ready == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(ready)
        : "r"(Shared(full)), "r"(parity)
        : "memory");
  }
}

__device__ void Store(std::uint8_t* to, const std::uint8_t* chunk, int size) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(Shared(chunk)), "r"(size)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void __launch_bounds__(32) AllGather(Args args) {
  __shared__ __align__(128) std::uint8_t chunk[kChunk];
  __shared__ std::uint64_t full;
  const int block = blockIdx.x, lane = threadIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane % args.world]);
  std::uint8_t* out = reinterpret_cast<std::uint8_t*>(args.out_peers[lane % args.world]);
  const std::uint8_t* in = reinterpret_cast<const std::uint8_t*>(args.in);
  const std::int64_t bytes = 4 * args.n, stride = gridDim.x * kChunk;
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch

  if (lane < args.world) StoreReleaseSys(&peer->entered[block][args.rank], call);  //@enter
  if (lane == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&full)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncwarp();
  std::uint32_t parity = 0;
  for (std::int64_t at = std::int64_t{block} * kChunk; at < bytes; at += stride, parity ^= 1) {
    const int size = bytes - at < kChunk ? bytes - at : kChunk;
    if (lane == 0) Load(chunk, in + at, size, &full);
    if (lane < args.world) {                              //@peers
      WaitAcquireSys(&mine->entered[block][lane], call);  //@entered
      AwaitLoad(&full, parity);                           //@loaded
      Store(out + args.rank * bytes + at, chunk, size);
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  //@reuse
    }
    __syncwarp();
  }
  if (lane < args.world) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
    StoreReleaseSys(&peer->arrived[block][args.rank], call);   //@publish
    WaitAcquireSys(&mine->arrived[block][lane], call);         //@wait
  }
  __syncwarp();
  if (lane == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t chunks = (4 * args.n + kChunk - 1) / kChunk;
  const int blocks = chunks < kMaxBlocks ? chunks : kMaxBlocks;
  AllGather<<<blocks, 32, 0, stream>>>(args);
}

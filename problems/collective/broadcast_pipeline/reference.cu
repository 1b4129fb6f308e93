// A tree of depth two, another one for every block: the root sends the chunks of block b to one
// rank, the hub of b, which forwards each chunk to all others as soon as it is there. Hubs take
// turns, so that everybody's link carries about one message in each direction, instead of world - 1
// out of the root's. Small messages take less time directly: there the root serves everybody.
//
// A block is one warp, and its lane p serves peer p. Whoever receives tells its upstream rank that
// it has entered, which opens its `out`, and leaves when the last chunk is there. A hub reads its
// own `out`, so it needs no other memory. The root leaves when its stores are done: nobody writes
// to it. `ready` counts chunks of all calls and only grows.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 64;
constexpr int kChunk = 16384;
constexpr std::int64_t kDirect = 262144;  // bytes up to which there is no hub

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t ready[kMaxBlocks];               // chunks that are here
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
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

__global__ void __launch_bounds__(32) Broadcast(Args args) {
  __shared__ __align__(128) std::uint8_t chunk[kChunk];
  __shared__ std::uint64_t full;
  const int block = blockIdx.x, lane = threadIdx.x, rank = args.rank, root = args.root;
  const std::int64_t bytes = 4 * args.n, stride = gridDim.x * kChunk;
  const bool direct = bytes <= kDirect;
  const int hub = direct ? root : (root + 1 + block % (args.world - 1)) % args.world;
  const int upstream = rank == hub ? root : hub;
  // The root serves its hub and itself, the hub all others.
  const bool is_root = rank == root, lane_is_leaf = lane != root && lane != hub;
  const bool serves = lane < args.world &&
                      ((is_root && (lane == hub || lane == root)) || (rank == hub && lane_is_leaf));
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane % args.world]);
  std::uint8_t* there = reinterpret_cast<std::uint8_t*>(args.out_peers[lane % args.world]);
  const std::uint8_t* in = reinterpret_cast<const std::uint8_t*>(args.in);
  const std::uint8_t* here = reinterpret_cast<const std::uint8_t*>(args.out);
  const std::uint8_t* source = args.rank == args.root ? in : here;
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch
  const std::int64_t first = std::int64_t{block} * kChunk;
  const std::uint32_t chunks = (bytes - first + stride - 1) / stride, base = (call - 1) * chunks;

  if (lane == (is_root ? root : upstream)) {
    StoreReleaseSys(&peer->entered[block][rank], call);  //@enter
  }
  if (lane == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&full)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncwarp();
  if (is_root || rank == hub) {
    std::uint32_t i = 0;
    for (std::int64_t at = first; at < bytes; at += stride, ++i) {
      const int size = bytes - at < kChunk ? bytes - at : kChunk;
      if (lane == 0) {
        if (!is_root) WaitAcquireSys(&mine->ready[block], base + i + 1);  //@received
        Load(chunk, source + at, size, &full);
      }
      if (serves) {
        WaitAcquireSys(&mine->entered[block][lane], call);  //@entered
        AwaitLoad(&full, i % 2);
        Store(there + at, chunk, size);
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
        StoreReleaseSys(&peer->ready[block], base + i + 1);        //@publish
      }
      __syncwarp();
    }
  }
  if (lane == 0) {
    WaitAcquireSys(&mine->ready[block], base + chunks);  //@wait
    mine->calls[block] = call;                           //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t chunks = (4 * args.n + kChunk - 1) / kChunk;
  const int blocks = chunks < kMaxBlocks ? chunks : kMaxBlocks;
  Broadcast<<<blocks, 32, 0, stream>>>(args);
}

// Blocks of one warp take tiles in turn; consecutive tiles go to different ranks. A tile comes into
// shared memory by a bulk copy and leaves for its place in the receiver's `out` by another one.
// There are four stages: three tiles are on their way in while one leaves. `full` of a stage
// completes with the bytes of its tile; a stage is filled again when the copy out has read them.
//
// An `out` is open once its owner has told of its entry; the first tiles come in meanwhile. A rank
// leaves when the same block of every rank has told that its tiles are complete here.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kStages = 4, kTile = 2048;  // words

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t done[kMaxBlocks][kMaxRanks];     // by peer: the last call whose tiles are here
};

struct Tile {
  const std::uint32_t* from;
  std::uint32_t* to;
  int bytes;
};

__device__ Tile TileOf(const Args& args, int t) {
  const int world = args.world, experts = args.experts;
  const int peer = (args.rank + t % world) % world, expert = t / world % experts;
  const std::int64_t first = std::int64_t{t / world / experts} * kTile, left = args.n - first;
  return {args.in + (peer * experts + expert) * args.n + first,
          args.out_peers[peer] + (expert * world + args.rank) * args.n + first,
          static_cast<int>(4 * (left < kTile ? left : kTile))};
}

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

__device__ void Load(std::uint32_t* stage, const Tile& tile, std::uint64_t* full) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(full)),
               "r"(tile.bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(stage)),
      "l"(tile.from), "r"(tile.bytes), "r"(Shared(full))
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

__device__ void Store(const Tile& tile, const std::uint32_t* stage) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(tile.to),
               "r"(Shared(stage)), "r"(tile.bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void __launch_bounds__(32) Exchange(Args args, int tiles) {
  __shared__ __align__(128) std::uint32_t stages[kStages][kTile];
  __shared__ std::uint64_t full[kStages];
  const int block = blockIdx.x, lane = threadIdx.x, stride = gridDim.x;
  const bool meets = lane < args.world;  // lane p meets rank p
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch

  if (meets) StoreReleaseSys(&peer->entered[block][args.rank], call);  //@enter
  if (lane == 0) {
    for (int s = 0; s < kStages; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&full[s])) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    for (int i = 0; i < kStages - 1 && block + i * stride < tiles; ++i) {
      Load(stages[i], TileOf(args, block + i * stride), &full[i]);
    }
  }
  if (meets) WaitAcquireSys(&mine->entered[block][lane], call);  //@entered
  __syncwarp();                                                  //@open
  if (lane == 0) {
    for (int i = 0, t = block; t < tiles; ++i, t += stride) {
      AwaitLoad(&full[i % kStages], i / kStages % 2);  //@loaded
      Store(TileOf(args, t), stages[i % kStages]);
      const int ahead = t + (kStages - 1) * stride, free = (i + kStages - 1) % kStages;
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  //@reuse
      if (ahead < tiles) Load(stages[free], TileOf(args, ahead), &full[free]);
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  //@complete
  }
  __syncwarp();  //@sent
  if (meets) {
    StoreReleaseSys(&peer->done[block][args.rank], call);  //@publish
    WaitAcquireSys(&mine->done[block][lane], call);        //@wait
  }
  if (lane == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int tiles = static_cast<int>((args.n + kTile - 1) / kTile * args.world * args.experts);
  Exchange<<<tiles < kMaxBlocks ? tiles : kMaxBlocks, 32, 0, stream>>>(args, tiles);
}

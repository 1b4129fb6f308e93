// All blocks multiply, and each has one warp more that gathers: no block is taken from the product,
// and the links are fed through the ports of all multiprocessors. Bulk copies need no more than a
// warp. A chunk of the shard comes into shared memory once and leaves from there for all ranks;
// lane l serves the rank at distance l, so that at any time ranks send to different ones. All
// but one of the stages are filled while peers enter.
//
// A `next` is open once its owner has told of its entry; products hide this wait. A rank leaves
// when the same block of every rank has told that its chunks are here. Flags hold the last call.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 4, kThreads = kTileThreads + 32, kStages = 8, kChunk = 8192;

struct Board {
  std::uint32_t calls[kMaxBlocks];               // own: that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose chunks are here
};
static_assert(sizeof(Board) <= 4096);

__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

__device__ void Load(std::uint8_t* stage, const std::uint8_t* from, int bytes,
                     std::uint64_t* full) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(full)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(Shared(stage)),
      "l"(from), "r"(bytes), "r"(Shared(full))
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

__device__ void Store(std::uint8_t* to, const std::uint8_t* stage, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(Shared(stage)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// By one warp.
__device__ void Gather(const Args& args) {
  extern __shared__ __align__(128) std::uint8_t stages[][kChunk];
  __shared__ std::uint64_t full[kStages];
  const int block = blockIdx.x, lane = threadIdx.x % 32;
  const bool talks = lane < args.world;
  const int peer = (args.rank + lane) % args.world;
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[peer]);
  const auto* shard = reinterpret_cast<const std::uint8_t*>(args.shard);
  auto* next = reinterpret_cast<std::uint8_t*>(args.next_peers[peer] + args.rank * args.n);
  const std::int64_t bytes = 4 * args.n, first = std::int64_t{block} * kChunk;
  const std::int64_t stride = std::int64_t{kChunk} * gridDim.x;
  const auto load = [&](int i) {
    const std::int64_t at = first + i * stride, left = bytes - at;
    const int size = static_cast<int>(left < kChunk ? left : kChunk);
    if (lane == 0 && left > 0) Load(stages[i % kStages], shard + at, size, &full[i % kStages]);
  };
  const std::uint32_t call = mine->calls[block] + 1;                     //@epoch
  if (talks) StoreReleaseSys(&theirs->entered[block][args.rank], call);  //@enter
  if (lane == 0) {
    for (std::uint64_t& barrier : full) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&barrier)) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  for (int i = 0; i + 1 < kStages; ++i) load(i);
  if (talks) WaitAcquireSys(&mine->entered[block][peer], call);  //@entered
  __syncwarp();
  for (int i = 0; first + i * stride < bytes; ++i) {
    const std::int64_t at = first + i * stride, left = bytes - at;
    if (talks) {
      AwaitLoad(&full[i % kStages], i / kStages % 2);  //@loaded
      Store(next + at, stages[i % kStages], static_cast<int>(left < kChunk ? left : kChunk));
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");  //@reuse
    }
    __syncwarp();  // all lanes have sent the chunk of the stage that is filled next
    load(i + kStages - 1);
  }
  if (talks) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");   //@complete
    StoreReleaseSys(&theirs->arrived[block][args.rank], call);  //@publish
    WaitAcquireSys(&mine->arrived[block][peer], call);          //@wait
  }
  __syncwarp();
  if (lane == 0) mine->calls[block] = call;  //@advance
}

__global__ void __launch_bounds__(kThreads) GatherMultiply(Args args) {
  __shared__ TileStage stage;
  if (threadIdx.x >= kTileThreads) {
    Gather(args);
    return;
  }
  TileProduct product(stage);
  for (std::int64_t t = blockIdx.x; t < args.tiles * args.cols; t += gridDim.x) {
    MultiplyTile(args, product, t);  //@multiply
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t chunks = (4 * args.n + kChunk - 1) / kChunk, tiles = args.tiles * args.cols;
  const std::int64_t most = chunks > tiles ? chunks : tiles;
  const int blocks = static_cast<int>(most < kMaxBlocks ? most : kMaxBlocks);
  cudaFuncSetAttribute(GatherMultiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       kStages * kChunk);
  GatherMultiply<<<blocks, kThreads, kStages * kChunk, stream>>>(args);
}

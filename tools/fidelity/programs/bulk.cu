// Bulk copies (TMA): device memory into shared memory in stages, and tiles from shared memory to a
// peer or to all.
#include "multicast.cuh"

namespace {

constexpr int kRanks = 8;

__device__ uint32_t SharedAddress(const void* pointer) {
  return uint32_t(__cvta_generic_to_shared(pointer));
}

__device__ void InitBarrier(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(barrier)));
}

// Starts a copy of `bytes` that completes a phase of `barrier`.
__device__ void LoadBulk(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)),
      "r"(bytes)
      : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(SharedAddress(to)),
      "l"(from), "r"(bytes), "r"(SharedAddress(barrier))
      : "memory");
}

__device__ void AwaitPhase(uint64_t* barrier, uint32_t parity) {
  int done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        "selp.b32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(SharedAddress(barrier)), "r"(parity)
        : "memory");
  }
}

__device__ void StoreBulk(void* to, const void* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(SharedAddress(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern __shared__ __align__(128) uint8_t stages[];

constexpr int kTile = 65536, kStages = 3;

__global__ void __launch_bounds__(128) LoadKernel(const uint8_t* from, uint32_t* sink, int tiles) {
  __shared__ uint64_t full[kStages];
  const uint8_t* mine = from + size_t(blockIdx.x) * tiles * kTile;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) InitBarrier(&full[s]);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s)
      LoadBulk(stages + s * kTile, mine + size_t(s) * kTile, kTile, &full[s]);
  }
  uint32_t sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    AwaitPhase(&full[stage], tile / kStages & 1);
    if (threadIdx.x == 0) {
      sum += *reinterpret_cast<const uint32_t*>(stages + stage * kTile);
      if (tile + kStages < tiles)
        LoadBulk(stages + stage * kTile, mine + size_t(tile + kStages) * kTile, kTile,
                 &full[stage]);
    }
  }
  if (threadIdx.x == 0) sink[blockIdx.x] = sum;
}

// Size: CTAs; the time of one 64 KiB tile. The published run streams 256 tiles per CTA; where that
// is much memory, fewer do.
double Load(double size) {
  const int blocks = int(size), tiles = blocks <= 4 ? 256 : blocks <= 16 ? 128 : 48;
  uint8_t* from = AllocateOn<uint8_t>(0, size_t(blocks) * tiles * kTile);
  uint32_t* sink = AllocateOn<uint32_t>(0, blocks * sizeof(uint32_t));
  CHECK(cudaFuncSetAttribute(LoadKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kStages * kTile));
  double best = 1e30;
  for (int i = 0; i < 2; ++i) {
    best = std::min(best, EventMicroseconds(nullptr, [&] {
                      LoadKernel<<<blocks, 128, kStages * kTile>>>(from, sink, tiles);
                    }));
  }
  CHECK(cudaFree(from));
  CHECK(cudaFree(sink));
  return best / tiles;
}

// One thread per CTA moves one tile: load, wait, store, wait.
__device__ void MoveTile(const uint8_t* from, uint8_t* to, uint32_t bytes) {
  __shared__ uint64_t full;
  InitBarrier(&full);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  LoadBulk(stages, from, bytes, &full);
  AwaitPhase(&full, 0);
  StoreBulk(to, stages, bytes);
}

constexpr uint32_t kExchangeTile = 4096, kGatherTile = 32768;

__global__ void __launch_bounds__(1, 8)
    ExchangeTileKernel(PerRank<uint8_t> from, PerRank<uint8_t> to, int rank, uint32_t chunk_tiles) {
  // Neighbouring tiles of the input belong to different peers.
  const uint32_t peer = blockIdx.x % kRanks, tile = blockIdx.x / kRanks;
  MoveTile(from.at[rank] + (size_t(peer) * chunk_tiles + tile) * kExchangeTile,
           to.at[peer] + (size_t(rank) * chunk_tiles + tile) * kExchangeTile, kExchangeTile);
}

__global__ void __launch_bounds__(1, 6)
    GatherTileKernel(const uint8_t* from, uint8_t* to, int rank, uint32_t tiles) {
  MoveTile(from + size_t(blockIdx.x) * kGatherTile,
           to + (size_t(rank) * tiles + blockIdx.x) * kGatherTile, kGatherTile);
}

// One call is a barrier, the tiles and a barrier: three launches.
double Calls(const std::function<void(int rank, cudaStream_t stream)>& tiles) {
  const auto counter = NewSymmetric<uint32_t>(kRanks, 4);
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMean, [&](int rank) {
    cudaStream_t stream = NewStream();
    return BackToBack(
        stream, 1, 2, [&] { meet(rank, stream); },
        [&](int) {
          CountedBarrierKernel<<<1, 1, 0, stream>>>(counter, rank, kRanks);
          tiles(rank, stream);
          CountedBarrierKernel<<<1, 1, 0, stream>>>(counter, rank, kRanks);
        });
  });
}

// Size: MB (10^6) of each rank's input.
double ExchangeTiles(double megabytes) {
  const auto chunk_tiles = uint32_t(megabytes * 1e6 / kExchangeTile / kRanks + 0.5);
  const size_t bytes = size_t(chunk_tiles) * kRanks * kExchangeTile;
  const PerRank<uint8_t> from = AllocateOnAll<uint8_t>(kRanks, bytes);
  const PerRank<uint8_t> to = AllocateOnAll<uint8_t>(kRanks, bytes);
  return Calls([&](int rank, cudaStream_t stream) {
    ExchangeTileKernel<<<chunk_tiles * kRanks, 1, kExchangeTile + 1024, stream>>>(from, to, rank,
                                                                                  chunk_tiles);
  });
}

// Size: MB (10^6) of the gathered whole.
double GatherTiles(double megabytes) {
  const auto tiles = uint32_t(megabytes * 1e6 / kRanks / kGatherTile + 0.5);
  const size_t bytes = size_t(tiles) * kGatherTile;
  const PerRank<uint8_t> from = AllocateOnAll<uint8_t>(kRanks, bytes);
  const auto to = NewSymmetric<uint8_t>(kRanks, bytes * kRanks);
  return Calls([&](int rank, cudaStream_t stream) {
    GatherTileKernel<<<tiles, 1, kGatherTile + 1024, stream>>>(from.at[rank], to.all, rank, tiles);
  });
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices >= kRanks) EnablePeers(kRanks);
  return RunExperiments(
      argc, argv,
      {{"load", Load}, {"exchange_tiles", ExchangeTiles}, {"gather_tiles", GatherTiles}});
}

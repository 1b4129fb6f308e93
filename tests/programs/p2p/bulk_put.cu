// Bulk asynchronous copies between devices: put (shared memory to a peer's memory), reduce (added
// to a peer's memory, all ranks into one) and get (a peer's memory to shared memory, completion by
// an mbarrier). One thread moves whole tiles. Before a flag goes up the copies must be complete,
// not only read: wait_group without .read.
//
// run put.2.processes: | 2 processes put
// run put.5.threads: | 5 threads put
// run reduce.3.threads: | 3 threads reduce
// run reduce.8.processes: | 8 processes reduce
// run get.2.threads: | 2 threads get
// run get.7.processes: | 7 processes get
// nvcc: -arch=sm_90
#include "world.h"

namespace {

constexpr int kThreads = 64, kTile = 256, kTiles = 3, kWords = kTile * kTiles, kCalls = 4;

struct Window {
  alignas(128) uint32_t inbox[kCalls][kWords];  // put, and sums of reduce
  alignas(128) uint32_t source[2][kWords];      // get
};

__host__ __device__ uint32_t Word(int rank, int call, int i) {
  return (rank + 1) * 65537u + call * 257u + i;
}

__device__ uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
// What threads wrote to shared memory, for the asynchronous copies to read.
__device__ void FenceAsync() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ void BulkOut(uint32_t* to, const uint32_t* tile, bool add) {
  if (add) {
    asm volatile(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(to),
        "r"(SharedAddress(tile)), "r"(kTile * 4)
        : "memory");
  } else {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(SharedAddress(tile)), "r"(kTile * 4)
                 : "memory");
  }
}

// Tile by tile through shared memory to `to`; all threads make the data, thread 0 moves it.
__device__ void Send(uint32_t* to, int rank, int call, bool add) {
  __shared__ alignas(128) uint32_t tiles[2][kTile];
  for (int t = 0; t < kTiles; ++t) {
    // The copy of two tiles ago has left this half of the shared memory.
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    __syncthreads();
    for (int i = threadIdx.x; i < kTile; i += kThreads)
      tiles[t % 2][i] = Word(rank, call, t * kTile + i);
    FenceAsync();
    __syncthreads();
    if (threadIdx.x == 0) {
      BulkOut(to + t * kTile, tiles[t % 2], add);
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    FenceAsync();
  }
}

__global__ void PutOrReduce(Peers<Window> windows, Peers<Meeting<1>> meeting, int rank, int ranks,
                            int call, bool reduce, uint32_t* output) {
  const int to = reduce ? call % ranks : (rank + 1) % ranks;
  Send(windows[to]->inbox[call], rank, call, reduce);
  Meet(meeting, rank, ranks, call + 1);
  for (int i = threadIdx.x; i < kWords; i += kThreads) output[i] = windows[rank]->inbox[call][i];
}

__global__ void Get(Peers<Window> windows, Peers<Meeting<1>> meeting, int rank, int ranks, int call,
                    uint32_t* output) {
  __shared__ alignas(128) uint32_t tiles[kWords];
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(&barrier))
                 : "memory");
    FenceAsync();
  }
  for (int i = threadIdx.x; i < kWords; i += kThreads)
    windows[rank]->source[call & 1][i] = Word(rank, call, i);
  FenceAsync();  // written by threads here, read by the peer's asynchronous copies
  Meet(meeting, rank, ranks, call + 1);
  if (threadIdx.x == 0) {
    FenceAsync();
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(&barrier)),
        "r"(kWords * 4)
        : "memory");
    for (int t = 0; t < kTiles; ++t) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(SharedAddress(tiles + t * kTile)),
          "l"(windows[(rank + 1) % ranks]->source[call & 1] + t * kTile), "r"(kTile * 4),
          "r"(SharedAddress(&barrier))
          : "memory");
    }
  }
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(SharedAddress(&barrier))
        : "memory");
  }
  for (int i = threadIdx.x; i < kWords; i += kThreads) output[i] = tiles[i];
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto windows = world.Share<Window>();
    const auto meeting = world.Share<Meeting<1>>();
    uint32_t* output = world.Allocate<uint32_t>(kCalls * kWords);
    for (int call = 0; call < kCalls; ++call) {
      if (setup.scheme == "get") {
        Get<<<1, kThreads, 0, world.stream()>>>(windows, meeting, rank, ranks, call,
                                                output + call * kWords);
      } else {
        PutOrReduce<<<1, kThreads, 0, world.stream()>>>(
            windows, meeting, rank, ranks, call, setup.scheme == "reduce", output + call * kWords);
      }
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "word", kCalls, world.Result(output, kCalls * kWords), [&](int k) {
      const int call = k / kWords, i = k % kWords;
      if (setup.scheme == "put") return Word(world.left(), call, i);
      if (setup.scheme == "get") return Word(world.right(), call, i);
      uint32_t sum = 0;
      for (int r = 0; r < ranks; ++r) sum += Word(r, call, i);
      return call % ranks == rank ? sum : 0;
    });
  });
}

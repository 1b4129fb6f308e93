// Put with signal, as in OpenSHMEM: data is stored at a peer, then a signal there is set or added
// to, and the target waits until the signal satisfies a condition. set: every rank has one partner
// at a time, and all pairs of the world take their turn. add: all put into rank r at once, which
// waits for one count. A fast source may be in the next round while a slow one is still in this, so
// even and odd rounds are counted apart.
//
// run set.2.threads: | 2 threads set
// run set.5.processes: | 5 processes set
// run set.8.threads: | 8 threads set
// run add.3.processes: | 3 processes add
// run add.7.threads: | 7 threads add
// run add.8.mixed: | 8 mixed add
#include "world.h"

namespace {

constexpr int kThreads = 128, kWords = 600, kRounds = 5;

struct Window {
  uint32_t signals[kMaxRanks];  // set: one per source
  uint32_t counts[2];           // add: of all sources, in even and odd rounds
  uint32_t data[2][kMaxRanks][kWords];
};

__host__ __device__ uint32_t Word(int from, int to, int round, int i) {
  return from * 100000000u + to * 10000000u + round * 1000000u + i;
}

__device__ void Put(uint32_t* to, int from_rank, int to_rank, int round) {
  for (int i = threadIdx.x; i < kWords; i += kThreads) to[i] = Word(from_rank, to_rank, round, i);
  __syncthreads();
}

__device__ void AddReleaseSys(uint32_t* counter, uint32_t value) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}

// In step s rank r puts to r + s and waits for r - s.
__global__ void SetSignals(Peers<Window> windows, int rank, int ranks, uint32_t* output) {
  for (int round = 0; round < kRounds; ++round) {
    for (int step = 1; step < ranks; ++step) {
      const int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
      Put(windows[to]->data[round & 1][rank], rank, to, round);
      if (threadIdx.x == 0) {
        StoreReleaseSys(&windows[to]->signals[rank], round + 1);
        WaitAtLeast(&windows[rank]->signals[from], round + 1);
        Stumble(rank, round * ranks + step);
      }
      __syncthreads();
      // Two buffers: `from` writes this one again in round + 2, after this rank's put of round + 1.
      for (int i = threadIdx.x; i < kWords; i += kThreads)
        output[(round * ranks + from) * kWords + i] = windows[rank]->data[round & 1][from][i];
    }
  }
}

__global__ void AddSignals(Peers<Window> windows, int rank, int ranks, uint32_t* output) {
  for (int round = 0; round < kRounds; ++round) {
    for (int step = 1; step < ranks; ++step) {
      const int to = (rank + step) % ranks;
      if (threadIdx.x == 0) Stumble(rank, round * ranks + step);
      __syncthreads();
      Put(windows[to]->data[round & 1][rank], rank, to, round);
      if (threadIdx.x == 0) AddReleaseSys(&windows[to]->counts[round & 1], 1);
    }
    if (threadIdx.x == 0)
      WaitAtLeast(&windows[rank]->counts[round & 1], (round / 2 + 1) * (ranks - 1));
    __syncthreads();
    for (int from = 0; from < ranks; ++from) {
      if (from == rank) continue;
      for (int i = threadIdx.x; i < kWords; i += kThreads)
        output[(round * ranks + from) * kWords + i] = windows[rank]->data[round & 1][from][i];
    }
    __syncthreads();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  return RunWorld(setup, [&](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto windows = world.Share<Window>();
    uint32_t* output = world.Allocate<uint32_t>(kRounds * ranks * kWords);
    (setup.scheme == "set" ? SetSignals : AddSignals)<<<1, kThreads, 0, world.stream()>>>(
        windows, rank, ranks, output);
    CUDA_CHECK_LAUNCH();
    RequireElements(world, "word", 0, world.Result(output, kRounds * ranks * kWords), [&](int k) {
      const int round = k / (ranks * kWords), from = k / kWords % ranks;
      return from == rank ? 0 : Word(from, rank, round, k % kWords);
    });
  });
}

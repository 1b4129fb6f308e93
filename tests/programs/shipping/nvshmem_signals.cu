// What NVSHMEM offers to kernels: put with signal (all threads of a block store, one of them fences
// and adds to the signal), a wait until a signal has a value (volatile polls, then a fence), and
// barrier_all by dissemination: in round k everyone tells the rank 2^k further on, and waits for
// the rank 2^k before; counters only grow. Each call gathers a block of every rank.
//
// All of it is in order by PTX: each store of a counter has a fence before it in its own thread,
// and each poll has one behind it.
//
// run two: --devices 2 | 2 threads
// run three: --devices 3 | 3 threads
// run four: --devices 4 | 4 threads
// run eight: --devices 8 | 8 threads
#include "ptx.h"
#include "world.h"

namespace {

constexpr int kThreads = 64, kCount = 700, kCalls = 4;

struct Heap {
  uint64_t signal[kMaxRanks];
  uint64_t rounds[3];
  uint32_t data[kMaxRanks][kCount];
};

__host__ __device__ uint32_t Word(int rank, int call, int i) {
  return rank * 0x9e3779b9u + call * 0x85ebca6bu + i;
}

__device__ void SignalWaitUntil(const uint64_t* signal, uint64_t value) {
  while (LoadVolatile(signal) < value) {
  }
  FenceSys();
}

__device__ void PutSignal(const Peers<Heap>& heaps, int rank, int to, const uint32_t* from,
                          uint64_t value) {
  for (int i = threadIdx.x; i < kCount; i += kThreads) heaps[to]->data[rank][i] = from[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    FenceSys();
    StoreVolatile(&heaps[to]->signal[rank], value);
  }
}

__device__ void BarrierAll(const Peers<Heap>& heaps, int rank, int ranks, uint64_t epoch) {
  __syncthreads();
  if (threadIdx.x == 0) {
    FenceSys();
    for (int round = 0, reach = 1; reach < ranks; ++round, reach *= 2) {
      StoreVolatile(&heaps[(rank + reach) % ranks]->rounds[round], epoch);
      SignalWaitUntil(&heaps[rank]->rounds[round], epoch);
    }
  }
  __syncthreads();
}

__global__ void AllGather(Peers<Heap> heaps, int rank, int ranks, uint64_t call,
                          const uint32_t* input, uint32_t* output) {
  for (int step = 0; step < ranks; ++step)
    PutSignal(heaps, rank, (rank + step) % ranks, input, call + 1);
  if (threadIdx.x < ranks) SignalWaitUntil(&heaps[rank]->signal[threadIdx.x], call + 1);
  __syncthreads();
  for (int i = threadIdx.x; i < ranks * kCount; i += kThreads)
    output[i] = heaps[rank]->data[i / kCount][i % kCount];
  BarrierAll(heaps, rank, ranks, call + 1);
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto heaps = world.Share<Heap>();
    std::vector<uint32_t> words;
    for (int k = 0; k < kCalls * kCount; ++k) words.push_back(Word(rank, k / kCount, k % kCount));
    const uint32_t* input = world.Allocate(words);
    uint32_t* output = world.Allocate<uint32_t>(kCalls * ranks * kCount);
    world.Barrier();
    for (int call = 0; call < kCalls; ++call) {
      AllGather<<<1, kThreads, 0, world.stream()>>>(heaps, rank, ranks, call, input + call * kCount,
                                                    output + call * ranks * kCount);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(
        world, "word", kCalls, world.Result(output, kCalls * ranks * kCount),
        [&](int k) { return Word(k / kCount % ranks, k / (ranks * kCount), k % kCount); });
  });
}

// Broadcast down a binomial tree, in chunks that overlap: a rank passes a chunk on to its children
// as soon as it has come. The root changes from call to call, and with it everyone's parent. So
// arrivals are counted apart for even and odd calls: the parent of the next call may be ahead of
// the parent of this one. Counters run on over all calls.
//
// run 2.processes: | 2 processes
// run 3.threads: | 3 threads
// run 5.processes: | 5 processes
// run 6.mixed: | 6 mixed
// run 7.threads: | 7 threads
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kThreads = 128, kChunk = 256, kChunks = 5, kCount = kChunk * kChunks - 30;
constexpr int kCalls = 9;

struct Buffers {
  uint32_t arrived[2];       // chunks up to and including those of the last even or odd call
  uint32_t done[kMaxRanks];  // calls that each rank has finished
  uint32_t data[2][kCount];
};

uint32_t Input(int call, int i) { return call * 2654435761u ^ (i * 40503u); }

// One block per rank. In the binomial tree relative rank v has the parent v without its highest
// bit, and children v + 2^k for all 2^k above v's highest bit.
__global__ void Broadcast(Peers<Buffers> buffers, int rank, int ranks, int root, uint32_t call,
                          const uint32_t* input, uint32_t* output) {
  const int relative = (rank - root + ranks) % ranks;
  Buffers* mine = buffers[rank];
  int highest = 1;
  while (highest <= relative) highest *= 2;
  const uint32_t base = call * kChunks;
  if (call >= 2) {
    // The buffer of call - 2 is free when everyone has finished that call.
    if (threadIdx.x < ranks) WaitAtLeast(&mine->done[threadIdx.x], call - 1);
  }
  __syncthreads();
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const int begin = chunk * kChunk, end = min(kCount, begin + kChunk);
    const uint32_t* source = input;
    if (relative != 0) {
      if (threadIdx.x == 0) WaitAtLeast(&mine->arrived[call & 1], base + chunk + 1);
      if (threadIdx.x == 0) Stumble(rank, base + chunk);
      source = mine->data[call & 1];
    }
    __syncthreads();
    for (int i = begin + threadIdx.x; i < end; i += kThreads) {
      const uint32_t word = source[i];
      output[i] = word;
      for (int bit = highest; relative + bit < ranks; bit *= 2)
        buffers[(relative + bit + root) % ranks]->data[call & 1][i] = word;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int bit = highest; relative + bit < ranks; bit *= 2)
        StoreReleaseSys(&buffers[(relative + bit + root) % ranks]->arrived[call & 1],
                        base + chunk + 1);
    }
  }
  __syncthreads();
  if (threadIdx.x < ranks) StoreReleaseSys(&buffers[threadIdx.x]->done[rank], call + 1);
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const auto buffers = world.Share<Buffers>();
    uint32_t* input = world.Allocate<uint32_t>(kCalls * kCount);
    uint32_t* output = world.Allocate<uint32_t>(kCalls * kCount);
    for (int call = 0; call < kCalls; ++call) {
      const int root = call * 3 % world.ranks();
      if (root == world.rank()) {
        std::vector<uint32_t> words;
        for (int i = 0; i < kCount; ++i) words.push_back(Input(call, i));
        Upload(input + call * kCount, words.data(), words.size());
      }
    }
    for (int call = 0; call < kCalls; ++call) {
      Broadcast<<<1, kThreads, 0, world.stream()>>>(buffers, world.rank(), world.ranks(),
                                                    call * 3 % world.ranks(), call,
                                                    input + call * kCount, output + call * kCount);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "word", kCalls, world.Result(output, kCalls * kCount),
                    [](int k) { return Input(k / kCount, k % kCount); });
  });
}

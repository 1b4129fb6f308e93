// Selection over all devices. argmax: everyone proposes its best as one 64-bit word (value above,
// index below) by an atomic maximum on every rank. top_k: everyone sends its own k best to all, and
// each merges the lists. Values repeat; of equal ones the smaller index wins.
//
// run argmax.2.threads: | 2 threads argmax
// run argmax.7.processes: | 7 processes argmax
// run top_k.3.processes: | 3 processes top_k
// run top_k.5.threads: | 5 threads top_k
// run top_k.8.mixed: | 8 mixed top_k
#include "world.h"

namespace {

constexpr int kPerRank = 700, kK = 12, kCalls = 4, kThreads = 128;
using Key = unsigned long long;

struct Buffers {
  Key best[kCalls];  // argmax
  Key lists[2][kMaxRanks][kK];
};

uint32_t Value(int call, int index) { return (index * 2654435761u + call * 97u) % 3001; }

// Greater keys are better: greater values first, then smaller indices.
__host__ __device__ Key KeyOf(uint32_t value, int index) {
  return Key(value) << 32 | ~uint32_t(index);
}

__device__ Key BlockMax(Key key) {
  __shared__ Key warps[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) {
    const Key other = __shfl_xor_sync(~0u, key, step);
    if (other > key) key = other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = key;
  __syncthreads();
  key = warps[0];
  for (int w = 1; w < kThreads / 32; ++w) {
    if (warps[w] > key) key = warps[w];
  }
  return key;
}

// The best key below `limit` in this rank's part.
__device__ Key BestBelow(Key limit, const uint32_t* values, int base) {
  Key best = 0;
  for (int i = threadIdx.x; i < kPerRank; i += kThreads) {
    const Key key = KeyOf(values[i], base + i);
    if (key < limit && key > best) best = key;
  }
  return BlockMax(best);
}

__global__ void ArgMax(Peers<Buffers> buffers, Peers<Meeting<1>> meeting, int rank, int ranks,
                       uint32_t call, const uint32_t* values, Key* output) {
  const Key best = BestBelow(~Key(0), values, rank * kPerRank);
  if (threadIdx.x < ranks) atomicMax_system(&buffers[threadIdx.x]->best[call], best);
  Meet(meeting, rank, ranks, call + 1);
  if (threadIdx.x == 0) output[0] = buffers[rank]->best[call];
}

__global__ void TopK(Peers<Buffers> buffers, Peers<Meeting<1>> meeting, int rank, int ranks,
                     uint32_t call, const uint32_t* values, Key* output) {
  Key limit = ~Key(0);
  for (int k = 0; k < kK; ++k) {
    limit = BestBelow(limit, values, rank * kPerRank);
    if (threadIdx.x < ranks) buffers[threadIdx.x]->lists[call & 1][rank][k] = limit;
  }
  Meet(meeting, rank, ranks, call + 1);
  // A candidate's place is the number of better ones: keys differ, so places do.
  const Key* all = buffers[rank]->lists[call & 1][0];
  for (int i = threadIdx.x; i < ranks * kK; i += kThreads) {
    int place = 0;
    for (int j = 0; j < ranks * kK; ++j) place += all[j] > all[i];
    if (place < kK) output[place] = all[i];
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool argmax = setup.scheme == "argmax";
  return RunWorld(setup, [=](World& world) {
    const auto buffers = world.Share<Buffers>();
    const auto meeting = world.Share<Meeting<1>>();
    std::vector<uint32_t> values;
    for (int k = 0; k < kCalls * kPerRank; ++k)
      values.push_back(Value(k / kPerRank, world.rank() * kPerRank + k % kPerRank));
    const uint32_t* input = world.Allocate(values);
    Key* output = world.Allocate<Key>(kCalls * kK);
    for (int call = 0; call < kCalls; ++call) {
      (argmax ? ArgMax : TopK)<<<1, kThreads, 0, world.stream()>>>(
          buffers, meeting, world.rank(), world.ranks(), call, input + call * kPerRank,
          output + call * kK);
      CUDA_CHECK_LAUNCH();
    }
    const std::vector<Key> got = world.Result(output, kCalls * kK);
    for (int call = 0; call < kCalls; ++call) {
      std::vector<Key> keys;
      for (int i = 0; i < world.ranks() * kPerRank; ++i) keys.push_back(KeyOf(Value(call, i), i));
      std::sort(keys.rbegin(), keys.rend());
      for (int k = 0; k < (argmax ? 1 : kK); ++k)
        REQUIRE(got[call * kK + k] == keys[k], "rank %d, call %d, place %d: %llx, expected %llx",
                world.rank(), call, k, got[call * kK + k], keys[k]);
    }
  });
}

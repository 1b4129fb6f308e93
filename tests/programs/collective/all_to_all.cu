// All-to-all: equal (blocks of one size, pushed straight to their place) and v (sizes that differ
// per pair and call, some of them zero: senders publish counts and offsets, receivers pull).
//
// run equal.2.threads: | 2 threads equal
// run equal.3.processes: | 3 processes equal
// run equal.8.threads: | 8 threads equal
// run v.2.processes: | 2 processes v
// run v.4.mixed: | 4 mixed v
// run v.5.threads: | 5 threads v
// run v.7.processes: | 7 processes v
#include "world.h"

namespace {

constexpr int kThreads = 128, kBlock = 300, kCalls = 4, kMost = kMaxRanks * kBlock;

struct Buffers {
  uint32_t received[kMost];  // equal
  int counts[kMaxRanks];     // v: words for each rank
  int offsets[kMaxRanks];    // and where they start
  uint32_t published[kMost];
};

uint32_t Word(int from, int to, int call, int i) {
  return uint32_t(from) << 28 | uint32_t(to) << 24 | uint32_t(call) << 16 | uint32_t(i);
}

__host__ __device__ int Count(int from, int to, int call) {
  return (from * 89 + to * 57 + call * 131) % 4 == 1 ? 0
                                                     : (from * 71 + to * 113 + call * 29) % kBlock;
}

// Block p of the grid deals with peer p.
__global__ void Equal(Peers<Buffers> buffers, Peers<Meeting<kMaxRanks>> meeting, int rank,
                      int ranks, int call, const uint32_t* input, uint32_t* output) {
  const int peer = blockIdx.x;
  for (int i = threadIdx.x; i < kBlock; i += kThreads)
    buffers[peer]->received[rank * kBlock + i] = input[peer * kBlock + i];
  // Only the pair (rank, peer) meets: block `rank` of the peer and this one.
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&meeting[peer]->reached[rank][0], call + 1);
    WaitAtLeast(&meeting[rank]->reached[peer][0], call + 1);
    Stumble(rank, call);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kBlock; i += kThreads)
    output[peer * kBlock + i] = buffers[rank]->received[peer * kBlock + i];
  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&meeting[peer]->reached[rank][1], call + 1);  // read, may be overwritten
    WaitAtLeast(&meeting[rank]->reached[peer][1], call + 1);
  }
}

// One block: counts are few, and the meetings are the point.
__global__ void Vector(Peers<Buffers> buffers, Peers<Meeting<kMaxRanks>> meeting, int rank,
                       int ranks, int call, const uint32_t* input, uint32_t* output) {
  Buffers* mine = buffers[rank];
  if (threadIdx.x == 0) {
    int offset = 0;
    for (int to = 0; to < ranks; ++to) {
      mine->counts[to] = Count(rank, to, call);
      mine->offsets[to] = offset;
      offset += mine->counts[to];
    }
  }
  __syncthreads();
  const int total = mine->offsets[ranks - 1] + mine->counts[ranks - 1];
  for (int i = threadIdx.x; i < total; i += kThreads) mine->published[i] = input[i];
  Meet(meeting, rank, ranks, 2 * call + 1);
  int at = 0;
  for (int from = 0; from < ranks; ++from) {
    const int count = buffers[from]->counts[rank], offset = buffers[from]->offsets[rank];
    for (int i = threadIdx.x; i < count; i += kThreads)
      output[at + i] = buffers[from]->published[offset + i];
    at += count;
  }
  Meet(meeting, rank, ranks, 2 * call + 2);
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool equal = setup.scheme == "equal";
  return RunWorld(setup, [=](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto count = [=](int from, int to, int call) {
      return equal ? kBlock : Count(from, to, call);
    };
    const auto buffers = world.Share<Buffers>();
    const auto meeting = world.Share<Meeting<kMaxRanks>>();
    std::vector<uint32_t> inputs(kCalls * kMost);
    for (int call = 0; call < kCalls; ++call) {
      int at = call * kMost;
      for (int to = 0; to < ranks; ++to) {
        for (int i = 0; i < count(rank, to, call); ++i) inputs[at++] = Word(rank, to, call, i);
      }
    }
    const uint32_t* input = world.Allocate(inputs);
    uint32_t* output = world.Allocate<uint32_t>(kCalls * kMost);
    for (int call = 0; call < kCalls; ++call) {
      (equal ? Equal : Vector)<<<equal ? ranks : 1, kThreads, 0, world.stream()>>>(
          buffers, meeting, rank, ranks, call, input + call * kMost, output + call * kMost);
      CUDA_CHECK_LAUNCH();
    }
    const std::vector<uint32_t> got = world.Result(output, kCalls * kMost);
    for (int call = 0; call < kCalls; ++call) {
      int at = call * kMost;
      for (int from = 0; from < ranks; ++from) {
        for (int i = 0; i < count(from, rank, call); ++i, ++at) {
          REQUIRE(got[at] == Word(from, rank, call, i), "rank %d, call %d, word %d from %d: %08x",
                  rank, call, i, from, got[at]);
        }
      }
      for (; at < (call + 1) * kMost; ++at) REQUIRE(got[at] == 0, "word %d is beyond the end", at);
    }
  });
}

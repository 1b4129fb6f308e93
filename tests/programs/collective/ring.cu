// Rings with a FIFO of two slots between neighbours: all_reduce (reduce-scatter, then all-gather:
// 2(n - 1) steps) and reduce_scatter (n - 1 steps). `arrived` counts chunks that the left neighbour
// has put here, `taken` those which the right neighbour has taken there; both count on from call to
// call, so that nothing is reset.
//
// run all_reduce.2.threads: | 2 threads all_reduce
// run all_reduce.3.processes: | 3 processes all_reduce
// run all_reduce.5.threads: | 5 threads all_reduce
// run all_reduce.8.processes: | 8 processes all_reduce
// run all_reduce.5.slow_gpu: --fault gpu:gpu2=0.05 | 5 processes all_reduce
// run reduce_scatter.2.processes: | 2 processes reduce_scatter
// run reduce_scatter.4.mixed: | 4 mixed reduce_scatter
// run reduce_scatter.7.threads: | 7 threads reduce_scatter
#include "world.h"

namespace {

constexpr int kChannels = 2, kThreads = 128, kCount = 2050, kCalls = 3, kSlots = 2;
constexpr int kSlotWords = kCount / kChannels / 2 + 2;  // the largest chunk, of two ranks

// A channel is a ring of its own over one block per rank, with its own part of the data.
struct Channel {
  uint32_t arrived, taken;
  int slots[kSlots][kSlotWords];
};

int Input(int rank, int call, int i) { return rank * 1000003 + call * 7919 + i * i; }

__global__ void Ring(Peers<Channel> channels, int rank, int ranks, int* data, uint32_t done,
                     bool gather) {
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  Channel* own = channels[rank] + blockIdx.x;
  Channel* to = channels[right] + blockIdx.x;
  Channel* from = channels[left] + blockIdx.x;
  const Slice part = SliceOf(kCount, blockIdx.x, kChannels);
  const int steps = (gather ? 2 : 1) * (ranks - 1);
  for (int step = 0; step < steps; ++step) {
    const uint32_t number = done + step;
    const int* slot = own->slots[number % kSlots];
    // At the end of the reduction rank r owns chunk r.
    const int out = (rank - step - 1 + 2 * ranks) % ranks, in = (out + ranks - 1) % ranks;
    const Slice send = SliceOf(part.size(), out, ranks), receive = SliceOf(part.size(), in, ranks);

    if (threadIdx.x == 0) {
      WaitAtLeast(&own->taken, number + 1 - kSlots);  // a free slot there
      Stumble(rank, number);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < send.size(); i += kThreads)
      to->slots[number % kSlots][i] = data[part.begin + send.begin + i];
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&to->arrived, number + 1);
      WaitAtLeast(&own->arrived, number + 1);
      Stumble(rank, ~number);
    }
    __syncthreads();
    const bool reduce = step < ranks - 1;
    for (int i = threadIdx.x; i < receive.size(); i += kThreads) {
      int& word = data[part.begin + receive.begin + i];
      word = reduce ? word + slot[i] : slot[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseSys(&from->taken, number + 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool gather = setup.scheme == "all_reduce";
  return RunWorld(setup, [=](World& world) {
    const int ranks = world.ranks();
    const auto channels = world.Share<Channel>(kChannels);
    std::vector<int> inputs;
    for (int k = 0; k < kCalls * kCount; ++k)
      inputs.push_back(Input(world.rank(), k / kCount, k % kCount));
    int* data = world.Allocate(inputs);
    for (int call = 0; call < kCalls; ++call) {
      Ring<<<kChannels, kThreads, 0, world.stream()>>>(
          channels, world.rank(), ranks, data + call * kCount,
          call * (gather ? 2 : 1) * (ranks - 1), gather);
      CUDA_CHECK_LAUNCH();
    }
    const std::vector<int> got = world.Result(data, inputs.size());
    for (int call = 0; call < kCalls; ++call) {
      for (int channel = 0; channel < kChannels; ++channel) {
        const Slice part = SliceOf(kCount, channel, kChannels);
        const Slice mine =
            gather ? Slice{0, part.size()} : SliceOf(part.size(), world.rank(), ranks);
        for (int i = part.begin + mine.begin; i < part.begin + mine.end; ++i) {
          int sum = 0;
          for (int r = 0; r < ranks; ++r) sum += Input(r, call, i);
          REQUIRE(got[call * kCount + i] == sum,
                  "rank %d, call %d, element %d: got %d, expected %d", world.rank(), call, i,
                  got[call * kCount + i], sum);
        }
      }
    }
  });
}

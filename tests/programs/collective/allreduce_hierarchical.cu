// All-reduce in two levels, as between two nodes: the ranks form two groups (of unequal size where
// the world is odd). Within a group each member reduces one slice, then takes the other group's sum
// of that slice from whoever owns it there, and passes the total on to its own group.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 6.mixed: | 6 mixed
// run 7.processes: | 7 processes
#include "world.h"

namespace {

constexpr int kThreads = 256, kCount = 1500, kCalls = 4;

struct Buffers {
  long long input[kCount];
  long long partial[kCount];  // the group's sums, at the owner of each slice
  long long total[kCount];
};

struct Group {
  int first, size;
};
__host__ __device__ Group GroupOf(int ranks, int which) {
  const int half = (ranks + 1) / 2;
  return which == 0 ? Group{0, half} : Group{half, ranks - half};
}

// Which of `parts` slices holds element i.
__device__ int OwnerOf(int i, int parts) {
  int part = 0;
  while (i >= SliceOf(kCount, part, parts).end) ++part;
  return part;
}

long long Input(int rank, int call, int i) { return (1ll << (4 * rank + 2)) * (i + 1) + call; }

// One block per rank: the whole block meets.
__global__ void AllReduce(Peers<Buffers> buffers, Peers<Meeting<1>> meeting, int rank, int ranks,
                          uint32_t epoch, const long long* input, long long* output) {
  const int which = rank >= GroupOf(ranks, 0).size;
  const Group own = GroupOf(ranks, which), other = GroupOf(ranks, 1 - which);
  const Slice slice = SliceOf(kCount, rank - own.first, own.size);
  Buffers* mine = buffers[rank];
  for (int i = threadIdx.x; i < kCount; i += kThreads) mine->input[i] = input[i];
  Meet(meeting, rank, ranks, 3 * epoch);
  for (int i = slice.begin + threadIdx.x; i < slice.end; i += kThreads) {
    long long sum = 0;
    for (int m = 0; m < own.size; ++m) sum += buffers[own.first + m]->input[i];
    mine->partial[i] = sum;
  }
  Meet(meeting, rank, ranks, 3 * epoch + 1);
  for (int i = slice.begin + threadIdx.x; i < slice.end; i += kThreads) {
    const int owner = other.first + OwnerOf(i, other.size);
    const long long total = mine->partial[i] + buffers[owner]->partial[i];
    for (int m = 0; m < own.size; ++m) buffers[own.first + m]->total[i] = total;
  }
  Meet(meeting, rank, ranks, 3 * epoch + 2);
  for (int i = threadIdx.x; i < kCount; i += kThreads) output[i] = mine->total[i];
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const auto buffers = world.Share<Buffers>();
    const auto meeting = world.Share<Meeting<1>>();
    std::vector<long long> inputs;
    for (int k = 0; k < kCalls * kCount; ++k)
      inputs.push_back(Input(world.rank(), k / kCount, k % kCount));
    const long long* input = world.Allocate(inputs);
    long long* output = world.Allocate<long long>(inputs.size());
    for (int call = 0; call < kCalls; ++call) {
      AllReduce<<<1, kThreads, 0, world.stream()>>>(buffers, meeting, world.rank(), world.ranks(),
                                                    call + 1, input + call * kCount,
                                                    output + call * kCount);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "sum", kCalls, world.Result(output, inputs.size()), [&](int k) {
      long long sum = 0;
      for (int r = 0; r < world.ranks(); ++r) sum += Input(r, k / kCount, k % kCount);
      return sum;
    });
  });
}

// Scatter from a root and gather to it, back to back in one stream: the root deals out its blocks,
// everyone transforms its own, the root collects them. The root changes from call to call, so that
// a rank must not start as root while its predecessor still collects.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kThreads = 128, kCount = 2005, kCalls = 6;

struct Buffers {
  int block[kCount];  // this rank's part, at its place in the whole
  int collected[kCount];
};

int Input(int call, int i) { return call * 100000 + i; }
__host__ __device__ int Transformed(int value, int rank) { return value * 3 + rank; }

__global__ void Scatter(Peers<Buffers> buffers, Peers<Meeting<1>> meeting, int rank, int ranks,
                        int root, uint32_t call, const int* input) {
  Meet(meeting, rank, ranks, 4 * call + 1);
  if (rank == root) {
    for (int r = 0; r < ranks; ++r) {
      const Slice slice = SliceOf(kCount, r, ranks);
      for (int i = slice.begin + threadIdx.x; i < slice.end; i += kThreads)
        buffers[r]->block[i] = input[i];
    }
  }
  Meet(meeting, rank, ranks, 4 * call + 2);
}

__global__ void Transform(Buffers* mine, Slice slice, int rank) {
  const int i = slice.begin + blockIdx.x * kThreads + threadIdx.x;
  if (i < slice.end) mine->block[i] = Transformed(mine->block[i], rank);
}

__global__ void Gather(Peers<Buffers> buffers, Peers<Meeting<1>> meeting, int rank, int ranks,
                       int root, uint32_t call, int* output) {
  const Slice slice = SliceOf(kCount, rank, ranks);
  for (int i = slice.begin + threadIdx.x; i < slice.end; i += kThreads)
    buffers[root]->collected[i] = buffers[rank]->block[i];
  Meet(meeting, rank, ranks, 4 * call + 3);
  if (rank == root) {
    for (int i = threadIdx.x; i < kCount; i += kThreads) output[i] = buffers[rank]->collected[i];
  }
}

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto buffers = world.Share<Buffers>();
    const auto meeting = world.Share<Meeting<1>>();
    const Slice slice = SliceOf(kCount, rank, ranks);
    std::vector<int> words;
    for (int k = 0; k < kCalls * kCount; ++k) words.push_back(Input(k / kCount, k % kCount));
    const int* input = world.Allocate(words);
    int* output = world.Allocate<int>(kCalls * kCount);
    for (int call = 0; call < kCalls; ++call) {
      const int root = call % ranks;
      Scatter<<<1, kThreads, 0, world.stream()>>>(buffers, meeting, rank, ranks, root, call,
                                                  input + call * kCount);
      Transform<<<(slice.size() + kThreads - 1) / kThreads, kThreads, 0, world.stream()>>>(
          buffers[rank], slice, rank);
      Gather<<<1, kThreads, 0, world.stream()>>>(buffers, meeting, rank, ranks, root, call,
                                                 output + call * kCount);
      CUDA_CHECK_LAUNCH();
    }
    RequireElements(world, "word", kCalls, world.Result(output, kCalls * kCount), [&](int k) {
      const int call = k / kCount, i = k % kCount;
      if (call % ranks != rank) return 0;
      int owner = 0;
      while (i >= SliceOf(kCount, owner, ranks).end) ++owner;
      return Transformed(Input(call, i), owner);
    });
  });
}

// An all-reduce inside a graph that is captured once per device and replayed: what the kernel is
// passed is frozen, so the epoch lives in device memory and each replay moves it on. The graph also
// makes the input before and uses the sum after the collective; replays follow each other without
// synchronisation.
//
// run 2.threads: | 2 threads
// run 3.processes: | 3 processes
// run 5.threads: | 5 threads
// run 8.processes: | 8 processes
#include "world.h"

namespace {

constexpr int kBlocks = 2, kThreads = 128, kCount = 1000, kReplays = 7;

struct Buffers {
  uint32_t slots[2][kMaxRanks][kCount];
};

__host__ __device__ uint32_t Input(int rank, uint32_t epoch, int i) {
  return (rank + 1) * 7919u + epoch * 104729u + i * 31u;
}

__global__ void MakeInput(int rank, const uint32_t* epoch, uint32_t* input) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) input[i] = Input(rank, *epoch, i);
}

__global__ void AllReduce(Peers<Buffers> buffers, Peers<Meeting<kBlocks>> meeting, int rank,
                          int ranks, const uint32_t* epoch_in_memory, const uint32_t* input,
                          uint32_t* output) {
  const uint32_t epoch = *epoch_in_memory;
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int r = 0; r < ranks; ++r) {
    for (int i = first; i < kCount; i += kBlocks * kThreads)
      buffers[r]->slots[epoch & 1][rank][i] = input[i];
  }
  Meet(meeting, rank, ranks, epoch);
  for (int i = first; i < kCount; i += kBlocks * kThreads) {
    uint32_t sum = 0;
    for (int r = 0; r < ranks; ++r) sum += buffers[rank]->slots[epoch & 1][r][i];
    output[i] = sum;
  }
}

// history[i] gathers all replays' sums so that none can be lost unnoticed.
__global__ void Use(const uint32_t* sums, uint32_t* history) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) history[i] = history[i] * 3 + sums[i];
}
__global__ void NextEpoch(uint32_t* epoch) { ++*epoch; }

}  // namespace

int main(int argc, char** argv) {
  return RunWorld(argc, argv, [](World& world) {
    const int rank = world.rank(), ranks = world.ranks();
    const auto buffers = world.Share<Buffers>();
    const auto meeting = world.Share<Meeting<kBlocks>>();
    uint32_t* epoch = world.Allocate(std::vector<uint32_t>{1});
    uint32_t* input = world.Allocate<uint32_t>(kCount);
    uint32_t* sums = world.Allocate<uint32_t>(kCount);
    uint32_t* history = world.Allocate<uint32_t>(kCount);

    // Other ranks of this process capture too: their calls must not disturb this capture.
    CUDA_CHECK(cudaStreamBeginCapture(world.stream(), cudaStreamCaptureModeThreadLocal));
    MakeInput<<<4, 256, 0, world.stream()>>>(rank, epoch, input);
    AllReduce<<<kBlocks, kThreads, 0, world.stream()>>>(buffers, meeting, rank, ranks, epoch, input,
                                                        sums);
    Use<<<4, 256, 0, world.stream()>>>(sums, history);
    NextEpoch<<<1, 1, 0, world.stream()>>>(epoch);
    CUDA_CHECK_LAUNCH();
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    CUDA_CHECK(cudaStreamEndCapture(world.stream(), &graph));
    CUDA_CHECK(cudaGraphInstantiate(&replay, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
    for (int i = 0; i < kReplays; ++i) CUDA_CHECK(cudaGraphLaunch(replay, world.stream()));
    RequireElements(world, "history", kReplays, world.Result(history, kCount), [&](int i) {
      uint32_t expected = 0;
      for (uint32_t e = 1; e <= kReplays; ++e) {
        uint32_t sum = 0;
        for (int r = 0; r < ranks; ++r) sum += Input(r, e, i);
        expected = expected * 3 + sum;
      }
      return expected;
    });
    CUDA_CHECK(cudaGraphExecDestroy(replay));
  });
}

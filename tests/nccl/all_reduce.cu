// What an all-reduce costs on all devices of one process, without what the host adds: a graph of
// one call and one of three are timed by events, the difference counts. NCCL_ALGO and NCCL_PROTO
// choose the way.
//   all_reduce DEVICES BYTES [once]
// `once`: a single call, not timed.
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "check.h"
#include "nccl_check.h"

namespace {

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  float* data = nullptr;
  cudaGraphExec_t graph = nullptr;
};

constexpr int kFirst = 1, kSecond = 3;

// Microseconds of the slowest rank for `calls` calls one after the other.
float Measure(std::vector<Rank>& ranks, std::size_t count, int calls) {
  const int world = static_cast<int>(ranks.size());
  for (int r = 0; r < world; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    const std::vector<float> values(count, static_cast<float>(r + 1));
    CUDA_CHECK(
        cudaMemcpy(ranks[r].data, values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  }
  for (Rank& rank : ranks)
    CUDA_CHECK(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeRelaxed));
  for (int call = 0; call < calls; ++call) {
    NCCL_CHECK(ncclGroupStart());
    for (Rank& rank : ranks)
      NCCL_CHECK(
          ncclAllReduce(rank.data, rank.data, count, ncclFloat32, ncclSum, rank.comm, rank.stream));
    NCCL_CHECK(ncclGroupEnd());
  }
  for (int r = 0; r < world; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    cudaGraph_t graph;
    CUDA_CHECK(cudaStreamEndCapture(ranks[r].stream, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&ranks[r].graph, graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
  }
  for (int r = 0; r < world; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    CUDA_CHECK(cudaEventRecord(ranks[r].begin, ranks[r].stream));
    CUDA_CHECK(cudaGraphLaunch(ranks[r].graph, ranks[r].stream));
    CUDA_CHECK(cudaEventRecord(ranks[r].end, ranks[r].stream));
  }
  float slowest = 0, expected = static_cast<float>(world * (world + 1) / 2);
  for (int call = 1; call < calls; ++call) expected *= static_cast<float>(world);
  for (int r = 0; r < world; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    CUDA_CHECK(cudaStreamSynchronize(ranks[r].stream));
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, ranks[r].begin, ranks[r].end));
    slowest = std::max(slowest, milliseconds);
    std::vector<float> values(count);
    CUDA_CHECK(
        cudaMemcpy(values.data(), ranks[r].data, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(values[i] == expected, "rank %d, element %zu is %g, not %g", r, i, values[i],
              expected);
    CUDA_CHECK(cudaGraphExecDestroy(ranks[r].graph));
  }
  return 1e3f * slowest;
}

}  // namespace

int main(int argc, char** argv) {
  const int world = argc > 1 ? std::atoi(argv[1]) : 8;
  const std::size_t bytes = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1 << 20;
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(world));
  std::vector<Rank> ranks(comms.size());
  NCCL_CHECK(ncclCommInitAll(comms.data(), world, nullptr));
  for (int r = 0; r < world; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    ranks[r].comm = comms[r];
    CUDA_CHECK(cudaStreamCreateWithFlags(&ranks[r].stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaMalloc(&ranks[r].data, bytes));
    CUDA_CHECK(cudaEventCreate(&ranks[r].begin));
    CUDA_CHECK(cudaEventCreate(&ranks[r].end));
  }
  Measure(ranks, bytes / sizeof(float), kFirst);  // connects
  if (argc > 3) return 0;
  const float first = Measure(ranks, bytes / sizeof(float), kFirst);
  const float second = Measure(ranks, bytes / sizeof(float), kSecond);
  REQUIRE(second > first, "three calls take %g us, one %g us", second, first);
  std::printf("%d devices, %zu bytes: %.1f us per all-reduce\n", world, bytes,
              (second - first) / (kSecond - kFirst));
  return 0;
}

// How collectives are called: groups of different ones, the user's streams, captured graphs, and
// communicators that are split. Usage: calls DEVICES COUNT [unordered]
//   unordered: nothing orders a kernel before the all-reduce of its results, for --check to find
#include <cstring>

#include "ranks.h"

namespace {

__global__ void Fill(float* data, std::size_t n, float value) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    data[i] = value;
}
__global__ void Double(float* data, std::size_t n) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    data[i] *= 2;
}

float Ranks() { return static_cast<float>(g_world * (g_world + 1) / 2); }  // 1 + 2 + ... + world

std::vector<float*> Allocate(std::size_t n) {
  std::vector<float*> data(g_world);
  Each([&](int r) {
    CUDA_CHECK(cudaMalloc(&data[r], n * sizeof(float)));
    CUDA_CHECK(cudaMemset(data[r], 0xff, n * sizeof(float)));
    CUDA_CHECK(cudaDeviceSynchronize());
  });
  return data;
}
void Free(const std::vector<float*>& data) {
  Each([&](int r) { CUDA_CHECK(cudaFree(data[r])); });
}

// Three collectives and a pair of sends in one group.
void Mixed(std::size_t n) {
  const auto sum = Allocate(n), all = Allocate(n * g_world), first = Allocate(n),
             from = Allocate(n);
  Each([&](int r) {
    const std::vector<float> own(n, static_cast<float>(r + 1));
    Upload(sum[r], own.data(), n);
    Upload(all[r] + r * n, own.data(), n);
    Upload(first[r], own.data(), n);
  });
  Group([&](int r) {
    ncclResult_t result =
        ncclAllGather(all[r] + r * n, all[r], n, ncclFloat32, g_comms[r], g_streams[r]);
    if (result == ncclSuccess)
      result =
          ncclSend(all[r] + r * n, n, ncclFloat32, (r + 1) % g_world, g_comms[r], g_streams[r]);
    if (result == ncclSuccess)
      result =
          ncclRecv(from[r], n, ncclFloat32, (r + g_world - 1) % g_world, g_comms[r], g_streams[r]);
    if (result == ncclSuccess)
      result = ncclAllReduce(sum[r], sum[r], n, ncclFloat32, ncclSum, g_comms[r], g_streams[r]);
    if (result == ncclSuccess)
      result = ncclBcast(first[r], n, ncclFloat32, 0, g_comms[r], g_streams[r]);
    return result;
  });
  Synchronize();
  Each([&](int r) {
    Compare<float>("all-reduce of a group", r, sum[r], n, [](std::size_t) { return Ranks(); });
    Compare<float>("all-gather of a group", r, all[r], n * g_world,
                   [&](std::size_t i) { return static_cast<float>(i / n + 1); });
    Compare<float>("broadcast of a group", r, first[r], n, [](std::size_t) { return 1.0f; });
    Compare<float>("receive of a group", r, from[r], n, [&](std::size_t) {
      return static_cast<float>((r + g_world - 1) % g_world + 1);
    });
  });
  for (const auto& data : {sum, all, first, from}) Free(data);
  Say("group ok");
}

// Kernels before and after, an event between two streams, one of them of higher priority, and the
// default stream.
void Streams(std::size_t n, bool ordered) {
  const auto data = Allocate(n);
  std::vector<cudaStream_t> urgent(g_world);
  std::vector<cudaEvent_t> filled(g_world), reduced(g_world);
  Each([&](int r) {
    int least = 0, greatest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA_CHECK(cudaStreamCreateWithPriority(&urgent[r], cudaStreamNonBlocking, greatest));
    CUDA_CHECK(cudaEventCreateWithFlags(&filled[r], cudaEventDisableTiming));
    CUDA_CHECK(cudaEventCreateWithFlags(&reduced[r], cudaEventDisableTiming));
    Fill<<<4, 128, 0, g_streams[r]>>>(data[r], n, static_cast<float>(r + 1));
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaEventRecord(filled[r], g_streams[r]));
    if (ordered) CUDA_CHECK(cudaStreamWaitEvent(urgent[r], filled[r]));
  });
  Group([&](int r) {
    return ncclAllReduce(data[r], data[r], n, ncclFloat32, ncclSum, g_comms[r], urgent[r]);
  });
  Each([&](int r) {
    CUDA_CHECK(cudaEventRecord(reduced[r], urgent[r]));
    CUDA_CHECK(cudaStreamWaitEvent(g_streams[r], reduced[r]));
    Double<<<4, 128, 0, g_streams[r]>>>(data[r], n);
    CUDA_CHECK_LAUNCH();
  });
  // The default stream waits for the blocking stream of Double.
  Group([&](int r) {
    return ncclAllReduce(data[r], data[r], n, ncclFloat32, ncclMax, g_comms[r], nullptr);
  });
  Each([&](int r) {
    Double<<<4, 128>>>(data[r], n);
    CUDA_CHECK(cudaStreamSynchronize(nullptr));
    if (ordered) Compare<float>("streams", r, data[r], n, [](std::size_t) { return 4 * Ranks(); });
    CUDA_CHECK(cudaStreamDestroy(urgent[r]));
    CUDA_CHECK(cudaEventDestroy(filled[r]));
    CUDA_CHECK(cudaEventDestroy(reduced[r]));
  });
  Free(data);
  Say("streams ok");
}

// A kernel, an all-reduce and an all-gather, captured on every rank and launched twice.
void Graph(std::size_t n) {
  const auto data = Allocate(n), all = Allocate(n * g_world);
  std::vector<cudaGraphExec_t> execs(g_world);
  Each([&](int r) {
    const std::vector<float> own(n, static_cast<float>(r + 1));
    Upload(data[r], own.data(), n);
  });
  Each([&](int r) {
    CUDA_CHECK(cudaStreamBeginCapture(g_streams[r], cudaStreamCaptureModeThreadLocal));
    Double<<<4, 128, 0, g_streams[r]>>>(data[r], n);
    CUDA_CHECK_LAUNCH();
  });
  Group([&](int r) {
    return ncclAllReduce(data[r], data[r], n, ncclFloat32, ncclSum, g_comms[r], g_streams[r]);
  });
  Group([&](int r) {
    return ncclAllGather(data[r], all[r], n, ncclFloat32, g_comms[r], g_streams[r]);
  });
  Each([&](int r) {
    cudaGraph_t graph;
    CUDA_CHECK(cudaStreamEndCapture(g_streams[r], &graph));
    CUDA_CHECK(cudaGraphInstantiate(&execs[r], graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
  });
  for (int launch = 0; launch < 2; ++launch)
    Each([&](int r) { CUDA_CHECK(cudaGraphLaunch(execs[r], g_streams[r])); });
  const float wanted = 2 * 2 * static_cast<float>(g_world) * Ranks();
  Each([&](int r) {
    CUDA_CHECK(cudaStreamSynchronize(g_streams[r]));
    Compare<float>("graph", r, data[r], n, [&](std::size_t) { return wanted; });
    Compare<float>("graph's gather", r, all[r], n * g_world, [&](std::size_t) { return wanted; });
    CUDA_CHECK(cudaGraphExecDestroy(execs[r]));
  });
  Free(data);
  Free(all);
  Say("graph ok");
}

// The even and the odd ranks apart, the last rank first; with three ranks and more rank 0 is in
// neither.
void Split(std::size_t n) {
  const bool without_first = g_world > 2;
  std::vector<ncclComm_t> halves(g_world);
  Group([&](int r) {
    const int color = without_first && r == 0 ? NCCL_SPLIT_NOCOLOR : r % 2;
    return ncclCommSplit(g_comms[r], color, g_world - r, &halves[r], nullptr);
  });
  const auto data = Allocate(n);
  Each([&](int r) {
    const std::vector<float> own(n, static_cast<float>(r + 1));
    Upload(data[r], own.data(), n);
    REQUIRE((halves[r] == nullptr) == (without_first && r == 0), "rank %d has %p", r, halves[r]);
  });
  Group([&](int r) {
    if (halves[r] == nullptr) return ncclSuccess;
    return ncclBroadcast(data[r], data[r], n, ncclFloat32, 0, halves[r], g_streams[r]);
  });
  Group([&](int r) {
    if (halves[r] == nullptr) return ncclSuccess;
    return ncclAllReduce(data[r], data[r], n, ncclFloat32, ncclSum, halves[r], g_streams[r]);
  });
  Each([&](int r) {
    CUDA_CHECK(cudaStreamSynchronize(g_streams[r]));
    if (halves[r] == nullptr) return;
    int members = 0, last = 0;
    for (int q = without_first ? 1 : 0; q < g_world; ++q) {
      if (q % 2 != r % 2) continue;
      ++members;
      last = q;
    }
    Compare<float>("split", r, data[r], n,
                   [&](std::size_t) { return static_cast<float>(members * (last + 1)); });
    NCCL_CHECK(ncclCommDestroy(halves[r]));
  });
  Free(data);
  Say("split ok");
}

}  // namespace

int main(int argc, char** argv) {
  Begin(static_cast<int>(Argument(argc, argv, 1, 2)));
  const auto n = static_cast<std::size_t>(Argument(argc, argv, 2, 1024));
  if (argc > 3 && std::strcmp(argv[3], "unordered") == 0) {
    Streams(n, false);
    return 0;
  }
  Mixed(n);
  Streams(n, true);
  Graph(n);
  Split(n);
  End();
}

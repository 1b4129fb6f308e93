// Communicators that do not block, that end in order, and that are aborted while a kernel waits for
// a peer that never comes: by the same thread, by a watchdog while the other thread waits for the
// stream, or, with `exec --ranks 2`, because the other process has ended. Afterwards the devices
// work as before. Usage: abort
#include <chrono>
#include <thread>

#include "ranks.h"

namespace {

constexpr std::size_t kCount = 1024;

// Polls the communicators of this process until no call is in progress.
void Settle() {
  Each([](int r) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      NCCL_CHECK(ncclCommGetAsyncError(g_comms[r], &state));
      if (state == ncclInProgress) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    REQUIRE(state == ncclSuccess, "rank %d: %s", r, ncclGetErrorString(state));
  });
}

void MayBeInProgress(ncclResult_t result) {
  REQUIRE(result == ncclSuccess || result == ncclInProgress, "%s", ncclGetErrorString(result));
}

void CheckAllReduce(const char* name) { AllReduce<float>(name, ncclFloat32, ncclSum, kCount); }

void NonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclUniqueId id;
  NCCL_CHECK(ncclGetUniqueId(&id));
  MayBeInProgress(ncclGroupStart());
  Each([&](int r) {
    MayBeInProgress(ncclCommInitRankConfig(&g_comms[r], g_world, id, r, &config));
  });
  const ncclResult_t begun = ncclGroupEnd();
  REQUIRE(begun == ncclInProgress, "initialisation: %s", ncclGetErrorString(begun));
  Settle();

  std::vector<float*> data(g_world);
  Each([&](int r) {
    CUDA_CHECK(cudaMalloc(&data[r], kCount * sizeof(float)));
    Upload(data[r], Inputs<float>(r, kCount).data(), kCount);
  });
  MayBeInProgress(ncclGroupStart());
  Each([&](int r) {
    MayBeInProgress(
        ncclAllReduce(data[r], data[r], kCount, ncclFloat32, ncclSum, g_comms[r], g_streams[r]));
  });
  MayBeInProgress(ncclGroupEnd());
  Settle();
  Each([&](int r) {
    CUDA_CHECK(cudaStreamSynchronize(g_streams[r]));
    Compare<float>("non-blocking", r, data[r], kCount,
                   [](std::size_t i) { return Reduced(ncclSum, i); });
    CUDA_CHECK(cudaFree(data[r]));
  });
  Each([](int r) { MayBeInProgress(ncclCommFinalize(g_comms[r])); });
  Settle();
  Each([](int r) { NCCL_CHECK(ncclCommDestroy(g_comms[r])); });
  Say("non-blocking ok");
}

// The all-reduce of rank 0 alone. Returns its buffer.
float* CallAlone() {
  float* data = nullptr;
  Use(0);
  CUDA_CHECK(cudaMalloc(&data, kCount * sizeof(float)));
  Upload(data, Inputs<float>(0, kCount).data(), kCount);
  NCCL_CHECK(ncclAllReduce(data, data, kCount, ncclFloat32, ncclSum, g_comms[0], g_streams[0]));
  return data;
}

// With a `watchdog` this thread waits for the stream, another one aborts.
void Abort(bool watchdog) {
  float* data = CallAlone();
  const auto abort = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Use(0);
    const cudaError_t state = cudaStreamQuery(g_streams[0]);
    REQUIRE(state == cudaErrorNotReady, "the kernel waits for nobody: %s", cudaGetErrorName(state));
    ncclResult_t error = ncclSuccess;
    NCCL_CHECK(ncclCommGetAsyncError(g_comms[0], &error));
    REQUIRE(error == ncclSuccess, "%s", ncclGetErrorString(error));
    Each([](int r) { NCCL_CHECK(ncclCommAbort(g_comms[r])); });
  };
  if (watchdog) {
    std::thread thread(abort);
    CUDA_CHECK(cudaStreamSynchronize(g_streams[0]));
    thread.join();
  } else {
    abort();
    Use(0);
    CUDA_CHECK(cudaStreamSynchronize(g_streams[0]));
  }
  CUDA_CHECK(cudaFree(data));
  Say(watchdog ? "aborted by another thread" : "aborted");
}

void InitAll() { NCCL_CHECK(ncclCommInitAll(g_comms.data(), g_world, nullptr)); }

void OneProcess() {
  g_world = g_end = 2;
  g_comms.resize(2);
  g_streams.resize(2);
  Each([](int r) { CUDA_CHECK(cudaStreamCreateWithFlags(&g_streams[r], cudaStreamNonBlocking)); });
  NonBlocking();
  for (const bool watchdog : {false, true}) {
    InitAll();
    CheckAllReduce("before the abort");
    Abort(watchdog);
  }
  InitAll();
  CheckAllReduce("after the aborts");
  Group([](int r) { return ncclCommFinalize(g_comms[r]); });
  for (int r = g_end; r-- > 0;) NCCL_CHECK(ncclCommDestroy(g_comms[r]));
  Say("done");
}

// The process of the last rank ends, the others abort.
void Processes() {
  Begin(2);
  CheckAllReduce("before the abort");
  if (g_first == 1) std::_Exit(0);
  Abort(true);
  Say("done");
}

}  // namespace

int main() { std::getenv("WORLD_SIZE") == nullptr ? OneProcess() : Processes(); }

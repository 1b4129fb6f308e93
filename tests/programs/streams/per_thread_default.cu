// Compiled so that stream 0 means the thread's own: threads do not wait for each other, and both
// names of the default streams can be used beside each other.
// nvcc: --default-stream per-thread
#include <thread>

#include "check.h"

namespace {

__global__ void WaitFor(volatile int* flag, int* seen) {
  while (*flag == 0) {
  }
  *seen = *flag;
}
__global__ void Set(volatile int* place, int value) { *place = value; }

}  // namespace

int main() {
  int* flag;
  CUDA_CHECK(cudaMallocHost(&flag, 2 * sizeof(int)));
  flag[0] = flag[1] = 0;
  int* device = ZeroedOn<int>(0, 4);

  // The kernel of this thread waits for the one of another thread, both in "stream 0": with one
  // default stream for all this would never end.
  WaitFor<<<1, 1>>>(flag, flag + 1);
  CUDA_CHECK_LAUNCH();
  CUDA_EXPECT(cudaErrorNotReady, cudaStreamQuery(0));
  std::thread other([&] {
    Set<<<1, 1>>>(flag, 7);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  });
  other.join();
  CUDA_CHECK(cudaStreamSynchronize(0));
  REQUIRE(flag[1] == 7, "saw %d", flag[1]);

  // Copies and sets of stream 0 follow this thread's work.
  Set<<<1, 1>>>(device, 5);
  int got = 0;
  CUDA_CHECK(cudaMemcpy(&got, device, sizeof got, cudaMemcpyDeviceToHost));
  REQUIRE(got == 5, "got %d", got);
  CUDA_CHECK(cudaMemset(device, 0, sizeof(int)));
  CUDA_CHECK(cudaMemcpyAsync(&got, device, sizeof got, cudaMemcpyDeviceToHost, 0));
  CUDA_CHECK(cudaStreamSynchronize(0));
  REQUIRE(got == 0, "got %d", got);

  // The legacy stream waits for the per-thread one, which is a blocking stream.
  Set<<<1, 1>>>(device + 1, 1);
  Set<<<1, 1, 0, cudaStreamLegacy>>>(device + 1, 2);
  CUDA_CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  REQUIRE(Fetch(device + 1) == 2, "got %d", Fetch(device + 1));
  unsigned long long own = 0, legacy = 0, named = 0;
  CUDA_CHECK(cudaStreamGetId(0, &own));
  CUDA_CHECK(cudaStreamGetId(cudaStreamPerThread, &named));
  CUDA_CHECK(cudaStreamGetId(cudaStreamLegacy, &legacy));
  REQUIRE(own == named && own != legacy, "ids %llu %llu %llu", own, named, legacy);

  // And it can be captured.
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamBeginCapture(0, cudaStreamCaptureModeThreadLocal));
  Set<<<1, 1>>>(device + 2, 9);
  CUDA_CHECK(cudaStreamEndCapture(0, &graph));
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  REQUIRE(Fetch(device + 2) == 0, "ran during the capture");
  CUDA_CHECK(cudaGraphLaunch(exec, 0));
  REQUIRE(Fetch(device + 2) == 9, "got %d", Fetch(device + 2));
  std::printf("PASS per_thread_default\n");
  return 0;
}

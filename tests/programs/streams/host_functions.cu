// Functions of the host in stream order: they see what was before them, what is after them waits
// for them, and they may not call CUDA.
//
// run: --devices 2
// run ranks: --ranks 2
// finds: out_of_bounds api_error
// faults: what a failed context still calls
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"

namespace {

__global__ void Set(int* place, int value) { *place = value; }
__global__ void Add(int* place, int value) { *place += value; }

struct Look {
  const volatile int* place;
  int seen;
  cudaError_t error;
  std::thread::id thread;
};
void CUDART_CB LookAt(void* data) {
  auto* look = static_cast<Look*>(data);
  look->seen = *look->place;
  look->thread = std::this_thread::get_id();
  look->error = cudaStreamQuery(nullptr);
}

std::vector<int> g_order;
void CUDART_CB Append(void* data) { g_order.push_back(int(reinterpret_cast<long>(data))); }
void CUDART_CB Callback(cudaStream_t, cudaError_t status, void* data) {
  g_order.push_back(status == cudaSuccess ? int(reinterpret_cast<long>(data)) : -1);
}

void CUDART_CB SleepTwoMilliseconds(void*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

void CUDART_CB Store(void* data) { *static_cast<volatile int*>(data) = 7; }

std::atomic<int> g_errors{0};
void CUDART_CB CountError(cudaStream_t, cudaError_t status, void*) {
  g_errors += status == cudaErrorIllegalAddress ? 1 : 100;
}
void CUDART_CB NeverCalled(void*) { g_errors += 1000; }
__global__ void Break() { *reinterpret_cast<volatile int*>(16) = 1; }

}  // namespace

int main() {
  int* shared;
  CUDA_CHECK(cudaMallocHost(&shared, 64));
  *shared = 0;
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CUDA_CHECK(cudaStreamCreate(&stream));

  // Before and after.
  Look looks[2] = {{shared, -1, cudaSuccess, {}}, {shared, -1, cudaSuccess, {}}};
  Set<<<1, 1, 0, streams[0]>>>(shared, 5);
  CUDA_CHECK(cudaLaunchHostFunc(streams[0], LookAt, &looks[0]));
  Add<<<1, 1, 0, streams[0]>>>(shared, 10);
  CUDA_CHECK(cudaLaunchHostFunc(streams[0], LookAt, &looks[1]));
  CUDA_CHECK(cudaStreamSynchronize(streams[0]));
  REQUIRE(looks[0].seen == 5 && looks[1].seen == 15, "saw %d and %d", looks[0].seen, looks[1].seen);
  REQUIRE(looks[0].error == cudaErrorNotPermitted, "a CUDA call inside a host function: %s",
          cudaGetErrorName(looks[0].error));
  REQUIRE(looks[0].thread != std::this_thread::get_id(), "ran on the caller's thread");

  // What a function stores is seen by the kernel behind it.
  int* device = ZeroedOn<int>(0);
  CUDA_CHECK(cudaLaunchHostFunc(streams[1], Store, shared));
  CUDA_CHECK(cudaMemcpyAsync(device, shared, sizeof(int), cudaMemcpyHostToDevice, streams[1]));
  Add<<<1, 1, 0, streams[1]>>>(device, 1);
  CUDA_CHECK(cudaStreamSynchronize(streams[1]));
  REQUIRE(Fetch(device) == 8, "got %d", Fetch(device));

  // Many, of both kinds, in one stream; the default stream waits for them.
  for (long i = 0; i < 20; ++i) {
    void* number = reinterpret_cast<void*>(i);
    if (i % 2 == 0) {
      CUDA_CHECK(cudaLaunchHostFunc(streams[0], Append, number));
    } else {
      CUDA_CHECK(cudaStreamAddCallback(streams[0], Callback, number, 0));
    }
  }
  CUDA_CHECK(cudaLaunchHostFunc(nullptr, Append, reinterpret_cast<void*>(20L)));
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(g_order.size() == 21, "%zu calls", g_order.size());
  for (int i = 0; i <= 20; ++i) REQUIRE(g_order[i] == i, "call %d was number %d", i, g_order[i]);

  // It takes the time it takes.
  cudaEvent_t start, stop;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  CUDA_CHECK(cudaEventRecord(start, streams[1]));
  CUDA_CHECK(cudaLaunchHostFunc(streams[1], SleepTwoMilliseconds, nullptr));
  CUDA_CHECK(cudaEventRecord(stop, streams[1]));
  CUDA_EXPECT(cudaErrorNotReady, cudaEventQuery(stop));
  CUDA_CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0;
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  // A schedule may hold the host up for some milliseconds more.
  REQUIRE(milliseconds >= 2 && milliseconds < 20, "%g ms", milliseconds);

  CUDA_EXPECT(cudaErrorInvalidValue, cudaLaunchHostFunc(streams[0], nullptr, nullptr));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaStreamAddCallback(streams[0], Callback, nullptr, 1));

  // After an error host functions are not called, callbacks are, with the error.
  Break<<<1, 1, 0, streams[0]>>>();
  CUDA_CHECK(cudaLaunchHostFunc(streams[0], NeverCalled, nullptr));
  CUDA_CHECK(cudaStreamAddCallback(streams[0], CountError, nullptr, 0));
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaStreamSynchronize(streams[0]));
  REQUIRE(g_errors == 1, "%d", g_errors.load());
  std::printf("PASS host_functions\n");
  return 0;
}

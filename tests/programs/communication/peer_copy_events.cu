// One host thread, two devices, two streams: kernels and peer copies ordered by events alone. Each
// round adds one on device 0, copies to device 1, doubles there and copies back.
// Usage: peer_copy_events [rounds]
#include <vector>

#include "check.h"

namespace {

constexpr int kCount = 4096;
constexpr int kThreads = 256;
constexpr size_t kBytes = kCount * sizeof(uint32_t);

__global__ void AddOne(uint32_t* data) { data[blockIdx.x * kThreads + threadIdx.x] += 1; }
__global__ void Double(uint32_t* data) { data[blockIdx.x * kThreads + threadIdx.x] *= 2; }

struct Side {
  int device;
  uint32_t* data;
  cudaStream_t stream;
  cudaEvent_t done;
};

Side NewSide(int device) {
  Side side{device, ZeroedOn<uint32_t>(device, kCount), nullptr, nullptr};
  CUDA_CHECK(cudaStreamCreateWithFlags(&side.stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreateWithFlags(&side.done, cudaEventDisableTiming));
  return side;
}

// Runs `kernel` on `side`, and then the copy of its data in the stream of `other`.
void Pass(void (*kernel)(uint32_t*), const Side& side, const Side& other) {
  CUDA_CHECK(cudaSetDevice(side.device));
  kernel<<<kCount / kThreads, kThreads, 0, side.stream>>>(side.data);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaEventRecord(side.done, side.stream));
  CUDA_CHECK(cudaSetDevice(other.device));
  CUDA_CHECK(cudaStreamWaitEvent(other.stream, side.done, 0));
  CUDA_CHECK(
      cudaMemcpyPeerAsync(other.data, other.device, side.data, side.device, kBytes, other.stream));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = int(Argument(argc, argv, 1, 5));
  RequireDevices(2);
  const Side sides[2] = {NewSide(0), NewSide(1)};
  std::vector<uint32_t> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i * 7;

  cudaEvent_t start, stop;
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  Upload(sides[0].data, host.data(), kCount);
  CUDA_CHECK(cudaEventRecord(start, sides[0].stream));
  for (int round = 0; round < rounds; ++round) {
    Pass(AddOne, sides[0], sides[1]);
    Pass(Double, sides[1], sides[0]);
  }
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaEventRecord(stop, sides[0].stream));
  CUDA_CHECK(cudaEventSynchronize(stop));

  float milliseconds = 0;
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  REQUIRE(milliseconds > 0, "%d rounds took %g ms", rounds, milliseconds);
  std::vector<uint32_t> got(kCount);
  CUDA_CHECK(cudaMemcpy(got.data(), sides[0].data, kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    uint32_t expected = host[i];
    for (int round = 0; round < rounds; ++round) expected = (expected + 1) * 2;
    REQUIRE(got[i] == expected, "element %d: got %u, expected %u", i, got[i], expected);
  }

  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  for (const Side& side : sides) {
    CUDA_CHECK(cudaSetDevice(side.device));
    CUDA_CHECK(cudaStreamDestroy(side.stream));
    CUDA_CHECK(cudaEventDestroy(side.done));
    CUDA_CHECK(cudaFree(side.data));
  }
  std::printf("PASS peer_copy_events: %d rounds\n", rounds);
  return 0;
}

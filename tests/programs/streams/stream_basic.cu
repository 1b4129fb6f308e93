// The simplest whole program: copy in, float4 add, copy out, in two streams, timed by events.
// Usage: stream_basic [float4 elements per stream]
#include "check.h"

namespace {

constexpr int kThreads = 256;
constexpr int kStreams = 2;

__global__ void Add(const float4* a, const float4* b, float4* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float4 x = a[i], y = b[i];
  c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = int(Argument(argc, argv, 1, 5000));
  const size_t bytes = count * sizeof(float4);
  RequireDevices(1);
  float* host[3];  // a, b, c for all streams
  float4* device[3];
  for (int k = 0; k < 3; ++k) {
    CUDA_CHECK(cudaMallocHost(&host[k], kStreams * bytes));
    CUDA_CHECK(cudaMalloc(&device[k], kStreams * bytes));
  }
  const int floats = kStreams * count * 4;
  for (int i = 0; i < floats; ++i) {
    host[0][i] = float(i);
    host[1][i] = float(2 * i + 1);
    host[2][i] = -1;
  }

  cudaStream_t streams[kStreams];
  cudaEvent_t start[kStreams], stop[kStreams];
  for (int s = 0; s < kStreams; ++s) {
    CUDA_CHECK(cudaStreamCreate(&streams[s]));
    CUDA_CHECK(cudaEventCreate(&start[s]));
    CUDA_CHECK(cudaEventCreate(&stop[s]));
    CUDA_CHECK(cudaEventRecord(start[s], streams[s]));
    for (int k = 0; k < 2; ++k) {
      CUDA_CHECK(cudaMemcpyAsync(device[k] + s * count, host[k] + s * count * 4, bytes,
                                 cudaMemcpyHostToDevice, streams[s]));
    }
    Add<<<(count + kThreads - 1) / kThreads, kThreads, 0, streams[s]>>>(
        device[0] + s * count, device[1] + s * count, device[2] + s * count, count);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpyAsync(host[2] + s * count * 4, device[2] + s * count, bytes,
                               cudaMemcpyDeviceToHost, streams[s]));
    CUDA_CHECK(cudaEventRecord(stop[s], streams[s]));
  }
  for (int s = 0; s < kStreams; ++s) {
    CUDA_CHECK(cudaStreamSynchronize(streams[s]));
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start[s], stop[s]));
    REQUIRE(milliseconds > 0, "stream %d took %g ms", s, milliseconds);
  }
  for (int i = 0; i < floats; ++i) {
    const float expected = float(i) + float(2 * i + 1);
    REQUIRE(host[2][i] == expected, "element %d: got %g, expected %g", i, host[2][i], expected);
  }

  for (int s = 0; s < kStreams; ++s) {
    CUDA_CHECK(cudaEventDestroy(start[s]));
    CUDA_CHECK(cudaEventDestroy(stop[s]));
    CUDA_CHECK(cudaStreamDestroy(streams[s]));
  }
  for (int k = 0; k < 3; ++k) {
    CUDA_CHECK(cudaFreeHost(host[k]));
    CUDA_CHECK(cudaFree(device[k]));
  }
  std::printf("PASS stream_basic: %d streams of %d float4\n", kStreams, count);
  return 0;
}

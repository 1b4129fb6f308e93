// __device__ and __constant__ variables by their symbols: addresses, sizes,
// copies in both directions with offsets, in streams, one copy of each variable
// per device.
// alone: programs beside it count the bytes that their own calls take
// finds: api_error
#include <cstring>
#include <vector>

#include "check.h"

namespace {

__device__ int g_values[64] = {10, 20, 30};
__constant__ int c_values[64] = {1, 2, 3};
__device__ double g_single = 2.5;
__constant__ float c_unset[3];

__global__ void Read(int* out) {
  out[threadIdx.x] = g_values[threadIdx.x] * 1000 + c_values[threadIdx.x];
}
__global__ void Write() {
  g_values[threadIdx.x] = 7 * threadIdx.x;
  if (threadIdx.x == 0) g_single = c_unset[0] + c_unset[2];
}

}  // namespace

int main() {
  RequireDevices(2);
  size_t size = 0;
  void *address = nullptr, *other = nullptr;
  CUDA_CHECK(cudaGetSymbolSize(&size, g_values));
  REQUIRE(size == 256, "size %zu", size);
  CUDA_CHECK(cudaGetSymbolSize(&size, c_unset));
  REQUIRE(size == 12, "size %zu", size);

  int* out = ZeroedOn<int>(0, 64);
  int host[64];
  Read<<<1, 64>>>(out);
  CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(host[0] == 10001 && host[2] == 30003 && host[3] == 0, "initial values");

  // Parts, by offset.
  const int some[2] = {-1, -2};
  CUDA_CHECK(cudaMemcpyToSymbol(g_values, some, sizeof some, 4));
  CUDA_CHECK(cudaMemcpyToSymbol(c_values, some, sizeof some, 8));
  Read<<<1, 64>>>(out);
  CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(host[0] == 10001 && host[1] == -998 && host[2] == -2001 && host[3] == -2, "%d %d %d %d",
          host[0], host[1], host[2], host[3]);
  CUDA_CHECK(cudaMemcpyFromSymbol(host, c_values, 12, 4));
  REQUIRE(host[0] == 2 && host[1] == -1 && host[2] == -2, "constant: %d %d %d", host[0], host[1],
          host[2]);

  // In a stream, from device memory and to it.
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  const float floats[3] = {1.0f, 9.0f, 0.25f};
  CUDA_CHECK(
      cudaMemcpyToSymbolAsync(c_unset, floats, sizeof floats, 0, cudaMemcpyHostToDevice, stream));
  Write<<<1, 64, 0, stream>>>();
  double single = 0;
  CUDA_CHECK(cudaMemcpyFromSymbolAsync(&single, g_single, sizeof single, 0, cudaMemcpyDeviceToHost,
                                       stream));
  CUDA_CHECK(cudaMemcpyFromSymbolAsync(out, g_values, 256, 0, cudaMemcpyDeviceToDevice, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(single == 1.25, "%f", single);
  CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(host[63] == 441, "%d", host[63]);

  // By address, as memory like any other.
  CUDA_CHECK(cudaGetSymbolAddress(&address, g_values));
  CUDA_CHECK(cudaMemset(address, 0, 256));
  CUDA_CHECK(cudaMemcpyFromSymbol(host, g_values, 256));
  REQUIRE(host[63] == 0, "%d", host[63]);
  cudaPointerAttributes attributes;
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, address));
  REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == 0, "type %d of device %d",
          attributes.type, attributes.device);

  // Each device has its own.
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaGetSymbolAddress(&other, g_values));
  REQUIRE(other != address, "one address on two devices");
  CUDA_CHECK(cudaMemcpyFromSymbol(host, g_values, 256));
  REQUIRE(host[0] == 10 && host[63] == 0, "device 1: %d %d", host[0], host[63]);

  // Refused.
  CUDA_EXPECT(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, host));
  CUDA_EXPECT(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(host, some, 4));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpyToSymbol(g_values, host, 256, 4));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpyFromSymbol(host, g_values, 4, 257));
  CUDA_EXPECT(cudaErrorInvalidMemcpyDirection,
              cudaMemcpyToSymbol(g_values, some, 4, 0, cudaMemcpyDeviceToHost));
  CUDA_EXPECT(cudaErrorInvalidMemcpyDirection,
              cudaMemcpyFromSymbol(host, g_values, 4, 0, cudaMemcpyHostToDevice));
  CUDA_EXPECT(cudaErrorInvalidMemcpyDirection, cudaGetLastError());
  std::puts("ok");
}

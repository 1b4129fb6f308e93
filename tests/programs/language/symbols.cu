// Variables of the device: __constant__ and __device__ scalars, arrays and structs with and without
// initialisers, copies to and from symbols with offsets, addresses and sizes.
//
// finds: api_error
#include "arrays.h"

namespace {

struct Settings {
  int mode;
  double scale;
  unsigned char bytes[5];
};

__constant__ Settings settings = {3, 0.25, {1, 2, 3, 4, 5}};
__constant__ float weights[64];
__device__ int counter = 7;
__device__ unsigned table[4][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
__device__ int* pointer = &counter;
__device__ double results[64];

__global__ void Use(int* out) {
  const int i = threadIdx.x;
  // The same place of constant memory for all lanes, and a different one for each.
  results[i] = settings.scale * settings.mode + weights[i] + settings.bytes[i % 5];
  atomicAdd(pointer, 1);
  out[i] = table[i % 4][i % 3];
}

}  // namespace

int main() {
  std::vector<float> host_weights;
  for (int i = 0; i < 64; ++i) host_weights.push_back(static_cast<float>(i) / 4);
  CUDA_CHECK(cudaMemcpyToSymbol(weights, host_weights.data(), 64 * sizeof(float)));
  int* out = Unwritten<int>(64);
  Use<<<1, 64>>>(out);
  std::vector<int> expected;
  for (int i = 0; i < 64; ++i) expected.push_back(i % 4 == 3 ? 0 : i % 4 * 3 + i % 3 + 1);
  REQUIRE_SAME(ToHost(out, 64), expected);
  double host_results[64];
  CUDA_CHECK(cudaMemcpyFromSymbol(host_results, results, sizeof(host_results)));
  for (int i = 0; i < 64; ++i) {
    REQUIRE(host_results[i] == 0.75 + i / 4.0 + i % 5 + 1, "result %d: %g", i, host_results[i]);
  }
  int count = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
  REQUIRE(count == 7 + 64, "the counter is %d", count);

  // Parts of symbols, and constant memory changed between launches.
  const Settings changed = {10, 2.0, {9, 9, 9, 9, 9}};
  CUDA_CHECK(cudaMemcpyToSymbol(settings, &changed, sizeof(changed)));
  const float one = 1000;
  CUDA_CHECK(cudaMemcpyToSymbol(weights, &one, sizeof(one), 5 * sizeof(float)));
  Use<<<1, 64>>>(out);
  double some[2];
  CUDA_CHECK(cudaMemcpyFromSymbol(some, results, sizeof(some), 4 * sizeof(double)));
  REQUIRE(some[0] == 20 + 1 + 9 && some[1] == 20 + 1000 + 9, "%g %g", some[0], some[1]);

  void* address = nullptr;
  size_t size = 0;
  CUDA_CHECK(cudaGetSymbolAddress(&address, table));
  CUDA_CHECK(cudaGetSymbolSize(&size, table));
  REQUIRE(size == sizeof(unsigned) * 12, "%zu bytes", size);
  REQUIRE(Fetch(static_cast<unsigned*>(address) + 7) == 8, "table[2][1]");
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpyToSymbol(counter, &one, 4, 4));
  cudaGetLastError();
  std::puts("PASS symbols");
}

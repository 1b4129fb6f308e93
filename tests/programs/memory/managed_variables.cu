// __managed__ variables: initial values, one memory for the host and all
// devices.
// alone: programs beside it count the bytes that their own calls take
#include "check.h"

namespace {

struct Pair {
  int a, b;
};

__managed__ int g_counter = 5;
__managed__ float g_table[100] = {1.5f, 2.5f};
__managed__ Pair g_pair = {3, 4};
__device__ __managed__ int* g_pointer;

__global__ void Change(int device) {
  g_counter += 10;
  g_table[threadIdx.x] += 1.0f;
  g_pair.b *= 2;
  if (g_pointer != nullptr) *g_pointer = device;
}

}  // namespace

int main() {
  RequireDevices(2);
  // Touched by the host before anything else happens on a device.
  REQUIRE(g_counter == 5 && g_table[1] == 2.5f && g_table[2] == 0 && g_pair.a == 3,
          "initial: %d %f", g_counter, g_table[1]);
  g_pointer = nullptr;
  g_counter = 100;
  for (int device = 0; device < 2; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    Change<<<1, 1>>>(device);
    CUDA_CHECK(cudaDeviceSynchronize());
    REQUIRE(g_counter == 110 + 10 * device, "counter %d", g_counter);
    REQUIRE(g_table[0] == 2.5f + float(device), "table %f", g_table[0]);
    REQUIRE(g_pair.b == 8 << device, "pair %d", g_pair.b);
  }
  int* shared = nullptr;
  CUDA_CHECK(cudaMallocManaged(&shared, sizeof(int)));
  g_pointer = shared;
  Change<<<1, 1>>>(77);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(*shared == 77, "through a managed pointer: %d", *shared);

  // By its symbol, too.
  void* address = nullptr;
  size_t size = 0;
  CUDA_CHECK(cudaGetSymbolAddress(&address, g_counter));
  CUDA_CHECK(cudaGetSymbolSize(&size, g_table));
  REQUIRE(address == &g_counter && size == sizeof g_table, "symbol");
  const int value = 9;
  CUDA_CHECK(cudaMemcpyToSymbol(g_counter, &value, sizeof value));
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(g_counter == 9, "%d", g_counter);
  cudaPointerAttributes attributes;
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, &g_pair));
  REQUIRE(attributes.type == cudaMemoryTypeManaged, "type %d", attributes.type);
  std::puts("ok");
}

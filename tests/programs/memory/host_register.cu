// cudaHostRegister: ordinary memory of the program becomes visible to devices
// where it lies, keeps its contents and its neighbours', can be registered
// twice in turn, and is ordinary again after.
//
// finds: api_error
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

namespace {

__global__ void Add(int* data, int count, int value) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] += value;
}

__global__ void Answer(volatile int* flag) {
  while (*flag != 1) {
  }
  *flag = 2;
}

}  // namespace

int main() {
  CUDA_CHECK(cudaSetDevice(0));
  // Heap memory, not aligned to pages, among others.
  constexpr int kCount = 5000;
  std::vector<int> before(300, 1), data(kCount), after(300, 2);
  for (int i = 0; i < kCount; ++i) data[i] = i;
  const std::vector<int> original = data;
  for (int round = 0; round < 3; ++round) {
    CUDA_CHECK(cudaHostRegister(data.data(), kCount * sizeof(int), cudaHostRegisterDefault));
    REQUIRE(data[17] == original[17] + 10 * round, "contents are kept");
    CUDA_EXPECT(cudaErrorHostMemoryAlreadyRegistered,
                cudaHostRegister(data.data() + 100, 64, cudaHostRegisterDefault));
    int* on_device = nullptr;
    CUDA_CHECK(cudaHostGetDevicePointer(&on_device, data.data(), 0));
    REQUIRE(on_device == data.data(), "one address space");
    cudaPointerAttributes attributes;
    CUDA_CHECK(cudaPointerGetAttributes(&attributes, data.data() + 5));
    REQUIRE(attributes.type == cudaMemoryTypeHost, "type %d", attributes.type);
    Add<<<1, 128>>>(on_device, kCount, 3);
    CUDA_CHECK(cudaDeviceSynchronize());
    data[0] += 7;
    Add<<<1, 128>>>(on_device + 1, kCount - 1, 7);
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kCount; ++i) {
      REQUIRE(data[i] == original[i] + 10 * (round + 1), "[%d] is %d in round %d", i, data[i],
              round);
    }
    CUDA_CHECK(cudaHostUnregister(data.data()));
    CUDA_EXPECT(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(data.data()));
    CUDA_CHECK(cudaPointerGetAttributes(&attributes, data.data()));
    REQUIRE(attributes.type == cudaMemoryTypeUnregistered, "type %d", attributes.type);
  }
  for (int value : before) REQUIRE(value == 1, "a neighbour was changed");
  for (int value : after) REQUIRE(value == 2, "a neighbour was changed");

  // Two registrations that share a page, ended in either order; copies across
  // it all.
  auto* page = static_cast<char*>(aligned_alloc(4096, 3 * 4096));
  memset(page, 0, 3 * 4096);
  for (bool first : {true, false}) {
    auto* a = reinterpret_cast<int*>(page + 2048);
    auto* b = reinterpret_cast<int*>(page + 6144);
    CUDA_CHECK(cudaHostRegister(a, 4096, cudaHostRegisterMapped));
    CUDA_CHECK(cudaHostRegister(b, 4096, cudaHostRegisterPortable));
    Add<<<1, 128>>>(a, 1024, 1);
    Add<<<1, 128>>>(b, 1024, 2);
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaHostUnregister(first ? a : b));
    Add<<<1, 128>>>(first ? b : a, 1024, 5);
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaHostUnregister(first ? b : a));
    REQUIRE(a[0] == (first ? 1 : 7) && a[1023] == (first ? 1 : 7), "a: %d %d", a[0], a[1023]);
    REQUIRE(b[0] == (first ? 7 : 9) && b[1023] == (first ? 7 : 9), "b: %d %d", b[0], b[1023]);
  }
  int* device = ZeroedOn<int>(0, kCount);
  CUDA_CHECK(cudaHostRegister(data.data(), kCount * sizeof(int), 0));
  CUDA_CHECK(cudaMemcpyAsync(device, data.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  Add<<<1, 128>>>(device, kCount, 1);
  CUDA_CHECK(cudaMemcpyAsync(data.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i)
    REQUIRE(data[i] == i + 31, "[%d] is %d after copies", i, data[i]);
  CUDA_CHECK(cudaHostUnregister(data.data()));

  // A thread that writes all the while loses no store.
  std::vector<long> counters(4096);
  bool stop = false;
  long written = 0;
  std::thread writer([&] {
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
      ++counters[written % 4096];
      ++written;
      if (written % 1000 == 0) usleep(1);
    }
  });
  for (int round = 0; round < 20; ++round) {
    CUDA_CHECK(cudaHostRegister(counters.data(), counters.size() * sizeof(long), 0));
    usleep(10);
    CUDA_CHECK(cudaHostUnregister(counters.data()));
    usleep(10);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
  writer.join();
  long sum = 0;
  for (long counter : counters) sum += counter;
  REQUIRE(sum == written && written > 0, "%ld of %ld stores are left", sum, written);

  // A flag on the heap that a kernel and the host wait for in turn.
  int* flag = new int(0);
  CUDA_CHECK(cudaHostRegister(flag, sizeof(int), 0));
  Answer<<<1, 1>>>(flag);
  *static_cast<volatile int*>(flag) = 1;
  while (*static_cast<volatile int*>(flag) != 2) {
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaHostUnregister(flag));
  delete flag;

  // Refused.
  int* pinned = nullptr;
  CUDA_CHECK(cudaMallocHost(&pinned, 4096));
  CUDA_EXPECT(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pinned, 4096, 0));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaHostRegister(nullptr, 4096, 0));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaHostRegister(data.data(), 0, 0));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaHostRegister(data.data(), 64, 0x80));
  CUDA_EXPECT(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(data.data()));
  CUDA_EXPECT(cudaErrorHostMemoryNotRegistered, cudaGetLastError());
  free(page);
  std::puts("ok");
}

// Pinned host memory with its flags: mapped into the devices at its own
// address, shared with a kernel while that runs, and what must be refused.
//
// finds: api_error
#include <cstring>

#include "check.h"

namespace {

__global__ void Double(int* data, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) data[i] *= 2;
}

// Answers each value that the host puts into `in` by its square in `out`.
__global__ void Square(volatile int* in, volatile int* out, int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    while (in[0] != round) {
    }
    out[1] = in[1] * in[1];
    __threadfence_system();
    out[0] = round;
  }
}

}  // namespace

int main() {
  RequireDevices(2);
  constexpr int kCount = 3000;
  for (unsigned flags : {unsigned{cudaHostAllocDefault}, unsigned{cudaHostAllocPortable},
                         unsigned{cudaHostAllocMapped}, unsigned{cudaHostAllocWriteCombined},
                         unsigned{cudaHostAllocPortable | cudaHostAllocMapped}}) {
    int* data = nullptr;
    CUDA_CHECK(cudaHostAlloc(&data, kCount * sizeof(int), flags));
    unsigned reported = 0;
    CUDA_CHECK(cudaHostGetFlags(&reported, data));
    REQUIRE(reported == (flags | cudaHostAllocMapped), "flags %u for %u", reported, flags);
    void* on_device = nullptr;
    CUDA_CHECK(cudaHostGetDevicePointer(&on_device, data, 0));
    REQUIRE(on_device == data, "one address space");
    for (int i = 0; i < kCount; ++i) data[i] = i;
    for (int device = 0; device < 2; ++device) {
      CUDA_CHECK(cudaSetDevice(device));
      Double<<<1, 256>>>(data, kCount);
      CUDA_CHECK(cudaDeviceSynchronize());
    }
    for (int i = 0; i < kCount; ++i) REQUIRE(data[i] == 4 * i, "[%d] is %d", i, data[i]);
    CUDA_CHECK(cudaHostGetDevicePointer(&on_device, data + 7, 0));
    REQUIRE(on_device == data + 7, "an address within");
    CUDA_CHECK(cudaFreeHost(data));
  }

  // Host and kernel in turns.
  CUDA_CHECK(cudaSetDevice(0));
  volatile int *in = nullptr, *out = nullptr;
  CUDA_CHECK(cudaMallocHost((void**)&in, 64));
  CUDA_CHECK(cudaMallocHost((void**)&out, 64));
  in[0] = out[0] = 0;
  constexpr int kRounds = 20;
  Square<<<1, 1>>>(in, out, kRounds);
  for (int round = 1; round <= kRounds; ++round) {
    in[1] = round + 100;
    in[0] = round;
    while (out[0] != round) {
    }
    REQUIRE(out[1] == (round + 100) * (round + 100), "round %d: %d", round, out[1]);
  }
  CUDA_CHECK(cudaDeviceSynchronize());

  // Refused.
  int own = 0, *pointer = nullptr;
  unsigned flags;
  void* on_device;
  CUDA_EXPECT(cudaErrorInvalidValue, cudaHostAlloc(&pointer, 64, 0x100));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaHostGetFlags(&flags, &own));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaHostGetDevicePointer(&on_device, &own, 0));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaHostGetDevicePointer(&on_device, (void*)in, 1));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeHost(&own));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeHost((void*)(in + 1)));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFree((void*)in));
  CUDA_CHECK(cudaFreeHost((void*)in));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeHost((void*)in));
  CUDA_CHECK(cudaFreeHost(nullptr));
  CUDA_CHECK(cudaMallocHost(&pointer, 0));
  std::puts("ok");
}

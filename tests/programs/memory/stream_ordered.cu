// cudaMallocAsync and cudaFreeAsync: memory lives from the one to the other in stream order, comes
// back to the device when the free is done, and a loop of both needs no synchronisation.
//
// finds: use_after_free api_error
// faults: a use after free
#include <vector>

#include "check.h"

namespace {

constexpr int kCount = 1024;

__global__ void Fill(int* data, int value) { data[threadIdx.x] = value + threadIdx.x; }
__global__ void Sum(const int* data, int* total) { atomicAdd(total, data[threadIdx.x]); }
__global__ void Wait(const volatile int* flag) {
  while (*flag == 0) {
  }
}

size_t FreeBytes() {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

}  // namespace

int main() {
  CUDA_CHECK(cudaSetDevice(0));
  cudaStream_t stream, other;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  int* total = ZeroedOn<int>(0);
  const size_t before = FreeBytes();

  // A loop without synchronisation uses one block of memory again and again.
  constexpr int kRounds = 200;
  int* first = nullptr;
  for (int round = 0; round < kRounds; ++round) {
    int* data = nullptr;
    CUDA_CHECK(cudaMallocAsync(&data, kCount * sizeof(int), stream));
    if (first == nullptr) first = data;
    REQUIRE(data == first, "round %d has another address", round);
    Fill<<<1, kCount, 0, stream>>>(data, round);
    Sum<<<1, kCount, 0, stream>>>(data, total);
    CUDA_CHECK(cudaFreeAsync(data, stream));
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK_LAUNCH();
  const int expected =
      kRounds * (kCount * (kCount - 1) / 2) + kCount * (kRounds * (kRounds - 1) / 2);
  REQUIRE(Fetch(total) == expected, "total %d, expected %d", Fetch(total), expected);
  REQUIRE(FreeBytes() == before, "%zu bytes are missing", before - FreeBytes());

  // Until its stream gets there, memory that was freed is still there; others get other memory.
  int* flag = nullptr;
  CUDA_CHECK(cudaMallocHost(&flag, sizeof(int)));
  *flag = 0;
  int *held = nullptr, *mine = nullptr;
  CUDA_CHECK(cudaMallocAsync(&held, kCount * sizeof(int), stream));
  Fill<<<1, kCount, 0, stream>>>(held, 5);
  Wait<<<1, 1, 0, stream>>>(flag);
  CUDA_CHECK(cudaMemsetAsync(total, 0, sizeof(int), stream));
  Sum<<<1, kCount, 0, stream>>>(held, total);
  CUDA_CHECK(cudaFreeAsync(held, stream));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeAsync(held, stream));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  CUDA_CHECK(cudaMallocAsync(&mine, kCount * sizeof(int), other));
  REQUIRE(mine != held, "memory that is still in use was handed out");
  Fill<<<1, kCount, 0, other>>>(mine, -7);
  CUDA_CHECK(cudaStreamSynchronize(other));
  CUDA_EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
  *flag = 1;
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(Fetch(total) == kCount * (kCount - 1) / 2 + 5 * kCount, "held memory was changed: %d",
          Fetch(total));
  CUDA_CHECK(cudaFreeAsync(mine, other));
  CUDA_CHECK(cudaDeviceSynchronize());

  // Both ways of freeing fit both ways of allocating.
  CUDA_CHECK(cudaMallocAsync(&mine, 64, stream));
  CUDA_CHECK(cudaFree(mine));
  CUDA_CHECK(cudaMalloc(&mine, 64));
  CUDA_CHECK(cudaFreeAsync(mine, stream));
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(FreeBytes() == before, "%zu bytes are missing", before - FreeBytes());

  // Refused.
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFree(mine));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeAsync(mine, stream));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeAsync(flag, stream));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMallocAsync(nullptr, 64, stream));
  CUDA_EXPECT(cudaErrorMemoryAllocation, cudaMallocAsync(&mine, size_t{1} << 50, stream));
  CUDA_EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
  CUDA_CHECK(cudaMallocAsync(&mine, 0, stream));

  // A use after the free faults and harms nobody.
  CUDA_CHECK(cudaMallocAsync(&held, kCount * sizeof(int), stream));
  CUDA_CHECK(cudaFreeAsync(held, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  Fill<<<1, kCount, 0, stream>>>(held, 1);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaStreamSynchronize(stream));
  std::puts("ok");
}

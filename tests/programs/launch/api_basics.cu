// The runtime calls an ordinary program makes around its kernels, and the error codes it meets when
// it makes them wrongly. No error here is sticky: the device works on to the end.
//
// finds: api_error
#include <vector>

#include "check.h"

namespace {

constexpr int kThreads = 128;
constexpr int kCount = 1000;

__constant__ uint32_t factor = 3;
__device__ uint32_t launches = 0;

__global__ void Scale(uint32_t* data, int count) {
  extern __shared__ uint32_t staged[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  staged[threadIdx.x] = i < count ? data[i] : 0;
  __syncthreads();
  if (i < count) data[i] = staged[threadIdx.x] * factor;
  if (i == 0) atomicAdd(&launches, 1);
}

void Device() {
  int device = -1, version = 0, runtime = 0, value = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  REQUIRE(device == 0, "the first current device is %d", device);
  CUDA_CHECK(cudaDriverGetVersion(&version));
  CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  REQUIRE(runtime / 1000 == 13 && version >= runtime, "runtime %d, driver %d", runtime, version);
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  REQUIRE(properties.name[0] != 0 && properties.warpSize == 32, "properties of %s",
          properties.name);
  CUDA_CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  REQUIRE(value == properties.major, "major %d, by attribute %d", properties.major, value);
  CUDA_CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  REQUIRE(value == properties.multiProcessorCount && value > 0, "%d multiprocessors", value);
  CUDA_CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
  REQUIRE(value == 1024, "%d threads per block", value);
  size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  REQUIRE(free_bytes > 0 && free_bytes <= total_bytes, "%zu of %zu", free_bytes, total_bytes);
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaSetDevice(1000));
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaGetLastError());
}

void Function() {
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, Scale));
  REQUIRE(attributes.maxThreadsPerBlock == 1024 && attributes.numRegs > 0,
          "%d threads per block, %d registers", attributes.maxThreadsPerBlock, attributes.numRegs);
  int blocks = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Scale, 1024, 0));
  REQUIRE(blocks == 2, "%d blocks of 1024 threads fit, not 2", blocks);
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Scale, 32, 40 << 10));
  REQUIRE(blocks == 5, "%d blocks with 40 KiB of shared memory fit, not 5", blocks);
  int dummy = 0;
  CUDA_EXPECT(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&attributes, &dummy));
  (void)cudaGetLastError();
}

void Memory(uint32_t* data) {
  cudaPointerAttributes attributes;
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, data + 5));
  REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == 0, "device pointer: %d",
          attributes.type);
  void* pinned = nullptr;
  CUDA_CHECK(cudaMallocHost(&pinned, 4096));
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, pinned));
  REQUIRE(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned,
          "pinned pointer: %d", attributes.type);
  CUDA_CHECK(cudaFreeHost(pinned));
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, &attributes));
  REQUIRE(attributes.type == cudaMemoryTypeUnregistered, "stack pointer: %d", attributes.type);

  void* huge = nullptr;
  CUDA_EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&huge, size_t(1) << 50));
  CUDA_EXPECT(cudaErrorMemoryAllocation, cudaPeekAtLastError());  // stays
  CUDA_EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());     // and is cleared
  CUDA_EXPECT(cudaSuccess, cudaGetLastError());
  CUDA_CHECK(cudaFree(nullptr));
}

void BadLaunches(uint32_t* data) {
  Scale<<<1, 2048>>>(data, kCount);
  CUDA_EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
  Scale<<<0, 32>>>(data, kCount);
  CUDA_EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
  Scale<<<1, 32, 100 << 10>>>(data, kCount);  // more than 48 KiB must be asked for
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  CUDA_CHECK(cudaFuncSetAttribute(Scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  Scale<<<1, 32, 100 << 10>>>(data, 0);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
}

void Events() {
  cudaEvent_t timed, untimed;
  CUDA_CHECK(cudaEventCreate(&timed));
  CUDA_CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventQuery(timed));  // never recorded: nothing to wait for
  float milliseconds = 0;
  CUDA_CHECK(cudaEventRecord(untimed, nullptr));
  CUDA_CHECK(cudaEventRecord(timed, nullptr));
  CUDA_CHECK(cudaEventSynchronize(timed));
  CUDA_EXPECT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, untimed, timed));
  (void)cudaGetLastError();
  CUDA_CHECK(cudaEventDestroy(timed));
  CUDA_CHECK(cudaEventDestroy(untimed));
}

// Everything together once: memset, symbols, launches in a stream, a result.
void Compute(uint32_t* data) {
  const uint32_t new_factor = 5;
  CUDA_CHECK(cudaMemcpyToSymbol(factor, &new_factor, sizeof new_factor));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaMemset(data, 0xFF, kCount * sizeof(uint32_t)));
  CUDA_CHECK(cudaMemsetAsync(data, 1, (kCount - 10) * sizeof(uint32_t), stream));
  for (int launch = 0; launch < 2; ++launch) {
    Scale<<<(kCount + kThreads - 1) / kThreads, kThreads, kThreads * sizeof(uint32_t), stream>>>(
        data, kCount);
    CUDA_CHECK_LAUNCH();
  }
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaStreamQuery(stream));
  CUDA_CHECK(cudaStreamDestroy(stream));
  std::vector<uint32_t> got(kCount);
  CUDA_CHECK(cudaMemcpy(got.data(), data, kCount * sizeof(uint32_t), cudaMemcpyDefault));
  for (int i = 0; i < kCount; ++i) {
    const uint32_t expected = (i < kCount - 10 ? 0x01010101u : 0xFFFFFFFFu) * 25;
    REQUIRE(got[i] == expected, "element %d: got %x, expected %x", i, got[i], expected);
  }
  uint32_t counted = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&counted, launches, sizeof counted));
  REQUIRE(counted == 3, "%u launches counted, expected 3", counted);
}

}  // namespace

int main() {
  Device();
  uint32_t* data = ZeroedOn<uint32_t>(0, kCount);
  Function();
  Memory(data);
  BadLaunches(data);
  Events();
  Compute(data);
  CUDA_CHECK(cudaFree(data));
  std::printf("PASS api_basics\n");
  return 0;
}

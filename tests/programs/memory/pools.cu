// Memory pools: attributes, the release threshold, trimming, the device's current pool, destruction
// with memory outstanding, and access by other devices, which peer access does not give.
//
// finds: not_mapped api_error
// faults: memory without access
#include <cstdint>

#include "check.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

uint64_t Get(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  uint64_t value = 0;
  CUDA_CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

size_t FreeBytes() {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

cudaMemPool_t Create(int device, size_t limit = 0) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location = {cudaMemLocationTypeDevice, device};
  properties.maxSize = limit;
  cudaMemPool_t pool = nullptr;
  CUDA_CHECK(cudaMemPoolCreate(&pool, &properties));
  return pool;
}

__global__ void Write(int* place, int value) { *place = value; }

}  // namespace

int main() {
  RequireDevices(2);
  CUDA_CHECK(cudaSetDevice(0));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  const size_t before = FreeBytes();

  // The default pool: no memory is kept.
  cudaMemPool_t standard, current;
  CUDA_CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
  CUDA_CHECK(cudaDeviceGetMemPool(&current, 0));
  REQUIRE(standard == current, "the default pool is not the current one");
  REQUIRE(Get(standard, cudaMemPoolAttrReleaseThreshold) == 0, "threshold");
  int reuse = 0;
  CUDA_CHECK(cudaMemPoolGetAttribute(standard, cudaMemPoolReuseAllowOpportunistic, &reuse));
  REQUIRE(reuse == 1, "opportunistic reuse %d", reuse);
  reuse = 0;
  CUDA_CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolReuseAllowOpportunistic, &reuse));
  reuse = 1;
  CUDA_CHECK(cudaMemPoolGetAttribute(standard, cudaMemPoolReuseAllowOpportunistic, &reuse));
  REQUIRE(reuse == 0, "opportunistic reuse %d", reuse);
  void *a, *b;
  CUDA_CHECK(cudaMallocAsync(&a, 3 * kMiB, stream));
  CUDA_CHECK(cudaMallocAsync(&b, 5 * kMiB, stream));
  REQUIRE(Get(standard, cudaMemPoolAttrUsedMemCurrent) == 8 * kMiB, "used");
  REQUIRE(Get(standard, cudaMemPoolAttrReservedMemCurrent) >= 8 * kMiB, "reserved");
  REQUIRE(before - FreeBytes() >= 8 * kMiB, "reserved memory counts as used");
  CUDA_CHECK(cudaFreeAsync(a, stream));
  CUDA_CHECK(cudaFreeAsync(b, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(Get(standard, cudaMemPoolAttrUsedMemCurrent) == 0, "used");
  REQUIRE(Get(standard, cudaMemPoolAttrUsedMemHigh) == 8 * kMiB, "high-water mark");
  REQUIRE(Get(standard, cudaMemPoolAttrReservedMemCurrent) == 0, "reserved");
  REQUIRE(FreeBytes() == before, "%zu bytes are missing", before - FreeBytes());
  uint64_t zero = 0, one = 1;
  CUDA_CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemHigh, &zero));
  REQUIRE(Get(standard, cudaMemPoolAttrUsedMemHigh) == 0, "high-water mark");
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaMemPoolSetAttribute(standard, cudaMemPoolAttrUsedMemHigh, &one));

  // A threshold keeps memory with the pool until it is trimmed.
  cudaMemPool_t pool = Create(0);
  uint64_t threshold = ~uint64_t{0};
  CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CUDA_CHECK(cudaMallocFromPoolAsync(&a, 40 * kMiB, pool, stream));
  CUDA_CHECK(cudaFreeAsync(a, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(Get(pool, cudaMemPoolAttrUsedMemCurrent) == 0, "used");
  REQUIRE(Get(pool, cudaMemPoolAttrReservedMemCurrent) >= 40 * kMiB, "kept");
  REQUIRE(before - FreeBytes() >= 40 * kMiB, "kept memory counts as used");
  CUDA_CHECK(cudaMemPoolTrimTo(pool, 0));
  REQUIRE(Get(pool, cudaMemPoolAttrReservedMemCurrent) == 0, "trimmed");
  REQUIRE(FreeBytes() == before, "%zu bytes are missing", before - FreeBytes());

  // The current pool of a device; a destroyed pool's memory lives until it is freed.
  CUDA_CHECK(cudaDeviceSetMemPool(0, pool));
  CUDA_CHECK(cudaDeviceGetMemPool(&current, 0));
  REQUIRE(current == pool, "the current pool");
  CUDA_CHECK(cudaMallocAsync(&a, 64, stream));
  REQUIRE(Get(pool, cudaMemPoolAttrUsedMemCurrent) == 64, "used");
  CUDA_CHECK(cudaMemPoolDestroy(pool));
  CUDA_CHECK(cudaDeviceGetMemPool(&current, 0));
  REQUIRE(current == standard, "the current pool after the destruction");
  Write<<<1, 1, 0, stream>>>(static_cast<int*>(a), 42);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(Fetch(static_cast<int*>(a)) == 42, "memory of a destroyed pool");
  CUDA_CHECK(cudaFreeAsync(a, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(FreeBytes() == before, "%zu bytes are missing", before - FreeBytes());

  // A limit.
  pool = Create(0, 4 * kMiB);
  CUDA_CHECK(cudaMallocFromPoolAsync(&a, 3 * kMiB, pool, stream));
  CUDA_EXPECT(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&b, 2 * kMiB, pool, stream));
  CUDA_CHECK(cudaFreeAsync(a, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaMemPoolDestroy(pool));

  // Refused.
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemPoolDestroy(standard));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaDeviceSetMemPool(1, standard));
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaDeviceGetDefaultMemPool(&current, 99));

  // Device 1 may use the pool's memory only when the pool says so.
  pool = Create(0);
  CUDA_CHECK(cudaMallocFromPoolAsync(&a, 64, pool, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  cudaMemLocation location{cudaMemLocationTypeDevice, 1};
  cudaMemAccessFlags flags;
  CUDA_CHECK(cudaMemPoolGetAccess(&flags, pool, &location));
  REQUIRE(flags == cudaMemAccessFlagsProtNone, "flags %d", flags);
  cudaMemAccessDesc access{location, cudaMemAccessFlagsProtReadWrite};
  CUDA_CHECK(cudaMemPoolSetAccess(pool, &access, 1));
  CUDA_CHECK(cudaMemPoolGetAccess(&flags, pool, &location));
  REQUIRE(flags == cudaMemAccessFlagsProtReadWrite, "flags %d", flags);
  CUDA_CHECK(cudaSetDevice(1));
  Write<<<1, 1>>>(static_cast<int*>(a), 7);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(static_cast<int*>(a)) == 7, "access by device 1");
  access.flags = cudaMemAccessFlagsProtNone;
  CUDA_CHECK(cudaMemPoolSetAccess(pool, &access, 1));
  access.location.id = 0;
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemPoolSetAccess(pool, &access, 1));
  EnablePeer(1, 0);
  Write<<<1, 1>>>(static_cast<int*>(a), 8);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  std::puts("ok");
}

// A memory pool of one process in another: its handle by a descriptor and by the fabric, allocations
// one by one, rights of the importer's devices, frees on both sides, and what an imported pool
// cannot do.
// run: --devices 2
// finds: api_error
#include "two_processes.h"

namespace {

constexpr size_t kCount = 4096;

__global__ void Fill(int* data, int value) {
  for (size_t i = threadIdx.x; i < kCount; i += blockDim.x) data[i] = value + int(i);
}
__global__ void Double(int* data) {
  for (size_t i = threadIdx.x; i < kCount; i += blockDim.x) data[i] *= 2;
}

cudaMemPoolProps On(int device, int types) {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = static_cast<cudaMemAllocationHandleType>(types);
  properties.location = {cudaMemLocationTypeDevice, device};
  return properties;
}

void Share(int rank, Partner& partner, bool fabric) {
  const auto type = fabric ? cudaMemHandleTypeFabric : cudaMemHandleTypePosixFileDescriptor;
  cudaMemPool_t pool = nullptr;
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  void* memory = nullptr;
  cudaMemPoolPtrExportData data = {};
  if (rank == 0) {
    const cudaMemPoolProps properties = On(0, type);
    CUDA_CHECK(cudaMemPoolCreate(&pool, &properties));
    CUDA_CHECK(cudaMallocFromPoolAsync(&memory, kCount * sizeof(int), pool, stream));
    Fill<<<1, 256, 0, stream>>>(static_cast<int*>(memory), 100);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaMemPoolExportPointer(&data, memory));
  }
  if (fabric) {
    struct {
      char bytes[64];
    } handle = {};
    if (rank == 0) CUDA_CHECK(cudaMemPoolExportToShareableHandle(&handle, pool, type, 0));
    handle = partner.Exchange(handle);
    if (rank == 1) CUDA_CHECK(cudaMemPoolImportFromShareableHandle(&pool, &handle, type, 0));
  } else {
    int fd = 0;
    if (rank == 0) CUDA_CHECK(cudaMemPoolExportToShareableHandle(&fd, pool, type, 0));
    const int got = partner.ExchangeDescriptor(fd);
    if (rank == 0) close(fd);
    if (rank == 1) {
      CUDA_CHECK(cudaMemPoolImportFromShareableHandle(
          &pool, reinterpret_cast<void*>(intptr_t{got}), type, 0));
    }
    close(got);
  }
  data = partner.Exchange(data);
  if (rank == 1) {
    // It gives nothing new, and is no device's pool.
    void* none = nullptr;
    CUDA_EXPECT(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&none, 64, pool, stream));
    CUDA_EXPECT(cudaErrorInvalidValue, cudaDeviceSetMemPool(0, pool));
    cudaMemPoolPtrExportData forged = data;
    forged.reserved[8] ^= 0x40;
    CUDA_EXPECT(cudaErrorInvalidValue, cudaMemPoolImportPointer(&none, pool, &forged));
    CUDA_CHECK(cudaMemPoolImportPointer(&memory, pool, &data));
    // Device 1 has no right yet.
    const cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, 1},
                                      cudaMemAccessFlagsProtReadWrite};
    cudaMemLocation here = {cudaMemLocationTypeDevice, 1};
    cudaMemAccessFlags flags;
    CUDA_CHECK(cudaMemPoolGetAccess(&flags, pool, &here));
    REQUIRE(flags == cudaMemAccessFlagsProtNone, "access %d", int(flags));
    CUDA_CHECK(cudaMemPoolSetAccess(pool, &access, 1));
    Double<<<1, 256, 0, stream>>>(static_cast<int*>(memory));
    CUDA_CHECK(cudaFreeAsync(memory, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_EXPECT(cudaErrorInvalidValue, cudaFreeAsync(memory, stream));
    CUDA_CHECK(cudaMemPoolDestroy(pool));
  }
  partner.Barrier();
  if (rank == 0) {
    int host[kCount];
    CUDA_CHECK(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDefault));
    for (size_t i = 0; i < kCount; ++i)
      REQUIRE(host[i] == 2 * (100 + int(i)), "element %zu: %d", i, host[i]);
    uint64_t used = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    REQUIRE(used == sizeof host, "%llu bytes in use", (unsigned long long)used);
    CUDA_CHECK(cudaFreeAsync(memory, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_EXPECT(cudaErrorInvalidValue, cudaMemPoolExportPointer(&data, memory));
    CUDA_CHECK(cudaMemPoolDestroy(pool));
  }
  partner.Barrier();
  CUDA_CHECK(cudaStreamDestroy(stream));
}

void Play(int rank, Partner partner) {
  RequireDevices(2);
  CUDA_CHECK(cudaSetDevice(rank));
  int types = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&types, cudaDevAttrMemoryPoolSupportedHandleTypes, 0));
  REQUIRE((types & cudaMemHandleTypePosixFileDescriptor) != 0, "types %d", types);
  Share(rank, partner, false);
  if ((types & cudaMemHandleTypeFabric) != 0) Share(rank, partner, true);
  // Ordinary pools stay at home.
  cudaMemPool_t standard;
  CUDA_CHECK(cudaDeviceGetDefaultMemPool(&standard, rank));
  int fd = -1;
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaMemPoolExportToShareableHandle(&fd, standard,
                                                 cudaMemHandleTypePosixFileDescriptor, 0));
  void* own = nullptr;
  CUDA_CHECK(cudaMallocAsync(&own, 256, nullptr));
  cudaMemPoolPtrExportData data;
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemPoolExportPointer(&data, own));
}

}  // namespace

int main() {
  const int child = RunTwoProcesses(Play);
  REQUIRE(child == 0, "rank 1 ended with %d", child);
  std::printf("PASS pools\n");
}

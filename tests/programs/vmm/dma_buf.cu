// Descriptors of ranges of device memory for other drivers: what has one, errors, how long the
// memory lives, and that another process can hold it.
// run: --devices 2
#include <fcntl.h>

#include "handles.h"
#include "two_processes.h"

namespace {

constexpr size_t kPage = 4096;

int DeviceAttribute(CUdevice_attribute attribute) {
  int value = -1;
  DRIVER_CHECK(DRIVER(cuDeviceGetAttribute)(&value, attribute, 0));
  return value;
}

CUresult Get(int* fd, CUdeviceptr address, size_t size, unsigned long long flags = 0) {
  *fd = -1;
  return DRIVER(cuMemGetHandleForAddressRange)(fd, address, size,
                                               CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, flags);
}

void Refuse(CUresult expected, CUdeviceptr address, size_t size, unsigned long long flags = 0) {
  int fd = -1;
  DRIVER_EXPECT(expected, Get(&fd, address, size, flags));
  REQUIRE(fd == -1, "a descriptor all the same");
}

void Errors() {
  REQUIRE(DeviceAttribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 1 &&
              DeviceAttribute(CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED) == 0,
          "attributes");
  char* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, kGranule));
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  Refuse(CUDA_ERROR_INVALID_VALUE, address + 512, kPage);
  Refuse(CUDA_ERROR_INVALID_VALUE, address, 100);
  Refuse(CUDA_ERROR_INVALID_VALUE, address, 0);
  Refuse(CUDA_ERROR_INVALID_VALUE, address, kGranule + kPage);
  Refuse(CUDA_ERROR_INVALID_VALUE, address - kPage, 2 * kPage);
  Refuse(CUDA_ERROR_INVALID_VALUE, 0, kPage);
  Refuse(CUDA_ERROR_INVALID_VALUE, address, kPage, 2);
  // There is one way to a device, so none can be chosen.
  Refuse(CUDA_ERROR_NOT_SUPPORTED, address, kPage, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
  int fd = -1;
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMemGetHandleForAddressRange)(&fd, address, kPage,
                                                      static_cast<CUmemRangeHandleType>(7), 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMemGetHandleForAddressRange)(nullptr, address, kPage,
                                                      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
  char* host = nullptr;
  CUDA_CHECK(cudaMallocHost(&host, kGranule));
  Refuse(CUDA_ERROR_NOT_SUPPORTED, reinterpret_cast<CUdeviceptr>(host), kPage);
  CUDA_CHECK(cudaFreeHost(host));
  CUDA_CHECK(cudaFree(memory));
  Refuse(CUDA_ERROR_INVALID_VALUE, address, kPage);
}

// Addresses that are mapped without a gap, as long as one device has all of it.
void Mappings() {
  const auto first = CreateOn(0, kGranule), second = CreateOn(0, kGranule),
             other = CreateOn(1, kGranule);
  const CUdeviceptr range = Reserve(4 * kGranule);
  DRIVER_CHECK(DRIVER(cuMemMap)(range, kGranule, 0, first, 0));
  DRIVER_CHECK(DRIVER(cuMemMap)(range + kGranule, kGranule, 0, second, 0));
  DRIVER_CHECK(DRIVER(cuMemMap)(range + 2 * kGranule, kGranule, 0, other, 0));
  Allow(range, 3 * kGranule, 0, 1);
  int fd = -1;
  DRIVER_CHECK(Get(&fd, range + kPage, 2 * kGranule - kPage));
  close(fd);
  Refuse(CUDA_ERROR_INVALID_VALUE, range, 3 * kGranule);
  Refuse(CUDA_ERROR_INVALID_VALUE, range + 2 * kGranule, 2 * kGranule);
  DRIVER_CHECK(DRIVER(cuMemUnmap)(range, 3 * kGranule));
  DRIVER_CHECK(DRIVER(cuMemAddressFree)(range, 4 * kGranule));
  for (const auto handle : {first, second, other}) DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
}

// Whoever has it open keeps the memory, the other process, too. It is no handle of memory.
void Descriptor(int rank, Partner& partner) {
  size_t before = 0, during = 0, after = 0, total = 0;
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaMemGetInfo(&before, &total));
  partner.Barrier();
  int fd = 0;
  if (rank == 0) {
    const auto memory = CreateOn(0, kGranule, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    char* mapped = MapFor<char>(memory, kGranule, 0, 0);
    DRIVER_CHECK(Get(&fd, reinterpret_cast<CUdeviceptr>(mapped), kGranule));
    REQUIRE(fcntl(fd, F_GETFD) >= 0, "%d is no descriptor", fd);
    UnmapAndFree(mapped, kGranule);
    DRIVER_CHECK(DRIVER(cuMemRelease)(memory));
  }
  const int got = partner.ExchangeDescriptor(fd);
  if (rank == 0) close(fd);
  if (rank == 1) {
    CUmemGenericAllocationHandle none = 0;
    DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemImportFromShareableHandle)(
                                                &none, reinterpret_cast<void*>(intptr_t{got}),
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUDA_CHECK(cudaMemGetInfo(&during, &total));
    REQUIRE(before - during == kGranule, "%zu bytes kept", before - during);
  }
  close(got);
  partner.Barrier();
  if (rank == 1) {
    // Something is created and released, and with it what nobody has open is noticed.
    DRIVER_CHECK(DRIVER(cuMemRelease)(CreateOn(0, kGranule)));
    CUDA_CHECK(cudaMemGetInfo(&after, &total));
    REQUIRE(before == after, "%zu bytes are missing", before - after);
  }
  partner.Barrier();
}

void Play(int rank, Partner partner) {
  RequireDevices(2);
  Descriptor(rank, partner);
  if (rank == 1) return;
  Errors();
  Mappings();
}

}  // namespace

int main() {
  const int child = RunTwoProcesses(Play);
  REQUIRE(child == 0, "rank 1 ended with %d", child);
  std::printf("PASS dma_buf\n");
}

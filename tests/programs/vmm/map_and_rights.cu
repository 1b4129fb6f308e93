// Physical memory, reserved addresses and mappings: several handles in one range that copies, sets
// and kernels cross, one handle at two addresses, rights per device, properties and errors.
// run: --devices 4
// finds: not_mapped api_error
// faults: memory without access
#include "handles.h"

namespace {

__global__ void Add(int* data, size_t count, int value) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    data[i] += value;
}
__global__ void Read(const int* from, int* to) { *to = *from; }
__global__ void Write(int* to) { *to = 1; }

int DeviceAttribute(CUdevice_attribute attribute) {
  int value = -1;
  DRIVER_CHECK(DRIVER(cuDeviceGetAttribute)(&value, attribute, 0));
  return value;
}

template <class T>
T PointerAttribute(CUpointer_attribute attribute, CUdeviceptr address) {
  T value{};
  DRIVER_CHECK(DRIVER(cuPointerGetAttribute)(&value, attribute, address));
  return value;
}

void Properties() {
  REQUIRE(DeviceAttribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1, "VMM");
  REQUIRE(DeviceAttribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 1,
          "descriptors");
  CUmemAllocationProp properties = MemoryOf(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  size_t granule = 0;
  DRIVER_CHECK(DRIVER(cuMemGetAllocationGranularity)(&granule, &properties,
                                                     CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  REQUIRE(granule != 0 && kGranule % granule == 0, "granularity %zu", granule);
  size_t before = 0, after = 0, total = 0;
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaMemGetInfo(&before, &total));
  CUmemGenericAllocationHandle handle = 0;
  DRIVER_CHECK(DRIVER(cuMemCreate)(&handle, 3 * granule, &properties, 0));
  CUDA_CHECK(cudaMemGetInfo(&after, &total));
  REQUIRE(before - after == 3 * granule, "%zu bytes taken", before - after);
  CUmemAllocationProp found;
  DRIVER_CHECK(DRIVER(cuMemGetAllocationPropertiesFromHandle)(&found, handle));
  REQUIRE(found.type == CU_MEM_ALLOCATION_TYPE_PINNED && found.location.id == 1 &&
              found.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
              found.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
          "properties");
  DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
  CUDA_CHECK(cudaMemGetInfo(&after, &total));
  REQUIRE(before == after, "not given back");
  // Sizes are multiples of the granularity; devices and kinds of memory must be there.
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMemCreate)(&handle, granule / 2, &properties, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemCreate)(&handle, granule, &properties, 1));
  DRIVER_EXPECT(CUDA_ERROR_OUT_OF_MEMORY,
                DRIVER(cuMemCreate)(&handle, total / kGranule * kGranule + kGranule, &properties, 0));
  properties.location.id = 99;
  DRIVER_EXPECT(CUDA_ERROR_INVALID_DEVICE, DRIVER(cuMemCreate)(&handle, granule, &properties, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemRelease)(0x123456789));
}

// Three handles of two devices side by side.
void Pieces() {
  const size_t size = 3 * kGranule, count = size / sizeof(int);
  const CUdeviceptr range = Reserve(size);
  REQUIRE(PointerAttribute<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, range) == 0, "mapped already");
  CUmemGenericAllocationHandle handles[3];
  for (int i = 0; i < 3; ++i) {
    handles[i] = CreateOn(i % 2, kGranule);
    DRIVER_CHECK(DRIVER(cuMemMap)(range + i * kGranule, kGranule, 0, handles[i], 0));
  }
  int* data = reinterpret_cast<int*>(range);
  CUDA_CHECK(cudaSetDevice(0));
  // Mapped, but nobody may use it yet.
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemsetD32)(range, 1, 16));
  Allow(range, size, 0, 1);
  REQUIRE(PointerAttribute<unsigned>(CU_POINTER_ATTRIBUTE_MAPPED, range) == 1, "not mapped");
  REQUIRE(PointerAttribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                        range + kGranule) == range,
          "range");
  REQUIRE(PointerAttribute<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, range) == size, "range size");
  REQUIRE(PointerAttribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                        range + kGranule + 5) == range + kGranule,
          "mapping");
  REQUIRE(PointerAttribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, range + kGranule) == 1,
          "device");
  REQUIRE(PointerAttribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, range) == 0,
          "IPC");

  // A set, copies of one and two dimensions and a kernel, all across the seams.
  std::vector<int> host(count), back(count);
  for (size_t i = 0; i < count; ++i) host[i] = int(i * 7);
  CUDA_CHECK(cudaMemset(data, 0x11, size));
  CUDA_CHECK(cudaMemcpy(data, host.data(), size, cudaMemcpyHostToDevice));
  for (int device = 0; device < 2; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    Add<<<8, 256>>>(data, count, device + 1);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  CUDA_CHECK(cudaMemcpy(back.data(), data, size, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; ++i)
    REQUIRE(back[i] == host[i] + 3, "element %zu: %d", i, back[i]);
  const size_t seam = kGranule / sizeof(int);
  CUDA_CHECK(cudaMemset2D(data + seam - 8, 64, 0, 48, 1));
  CUDA_CHECK(cudaMemcpy2D(data + 2 * seam - 4, 32, data + seam - 8, 32, 32, 1,
                          cudaMemcpyDeviceToDevice));
  CUDA_CHECK(cudaMemcpy(back.data(), data, size, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; ++i) {
    const bool zero = (i >= seam - 8 && i < seam + 4) || (i >= 2 * seam - 4 && i < 2 * seam + 4);
    REQUIRE(back[i] == (zero ? 0 : host[i] + 3), "element %zu: %d", i, back[i]);
  }
  // Beyond the last of them there is nothing.
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaMemcpy(back.data(), data + 16, size, cudaMemcpyDeviceToHost));

  // The handle of an address is the one that was mapped, with one more reference.
  CUmemGenericAllocationHandle again = 0;
  DRIVER_CHECK(DRIVER(cuMemRetainAllocationHandle)(&again, data + seam + 3));
  REQUIRE(again == handles[1], "another handle");
  DRIVER_CHECK(DRIVER(cuMemRelease)(again));
  // Released handles stay while they are mapped.
  for (const auto handle : handles) DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
  CUDA_CHECK(cudaMemcpy(back.data(), data, size, cudaMemcpyDeviceToHost));
  REQUIRE(back[5] == host[5] + 3, "lost with its handle");
  // Parts of mappings cannot be unmapped, and reservations go only when they are empty.
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemUnmap)(range, kGranule / 2));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemAddressFree)(range, size));
  DRIVER_CHECK(DRIVER(cuMemUnmap)(range, size));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemUnmap)(range, size));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemAddressFree)(range, kGranule));
  DRIVER_CHECK(DRIVER(cuMemAddressFree)(range, size));
}

void Addresses() {
  const CUdeviceptr first = Reserve(kGranule);
  CUdeviceptr second = 0;
  // A wish for free addresses is granted, and one for taken addresses is only a wish.
  const CUdeviceptr wish = first + 64 * kGranule;
  DRIVER_CHECK(DRIVER(cuMemAddressReserve)(&second, 2 * kGranule, 0, wish, 0));
  REQUIRE(second == wish, "%llx instead of %llx", second, wish);
  CUdeviceptr third = 0;
  DRIVER_CHECK(DRIVER(cuMemAddressReserve)(&third, kGranule, 16 * kGranule, wish + kGranule, 0));
  REQUIRE(third != 0 && third % (16 * kGranule) == 0, "alignment of %llx", third);
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMemAddressReserve)(&third, kGranule, 3 * kGranule, 0, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemAddressReserve)(&third, 100, 0, 0, 0));

  // One handle at two addresses is the same memory.
  const CUmemGenericAllocationHandle handle = CreateOn(0, kGranule);
  DRIVER_CHECK(DRIVER(cuMemMap)(first, kGranule, 0, handle, 0));
  DRIVER_CHECK(DRIVER(cuMemMap)(second + kGranule, kGranule, 0, handle, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemMap)(first, kGranule, 0, handle, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuMemMap)(second + kGranule / 2, kGranule, 0, handle, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemMap)(second, 2 * kGranule, 0, handle, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemMap)(second, kGranule, 0, handle + 77, 0));
  // Not all of that range is mapped.
  const CUmemAccessDesc own = RightOf(0);
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemSetAccess)(second, 2 * kGranule, &own, 1));
  Allow(first, kGranule, 0, 0);
  Allow(second + kGranule, kGranule, 0, 0);
  int* one = reinterpret_cast<int*>(first);
  int* other = reinterpret_cast<int*>(second + kGranule);
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaMemset(one, 0, kGranule));
  Add<<<4, 128>>>(other, 1000, 5);
  Add<<<4, 128>>>(one, 1000, 6);
  const int value = Fetch(other + 999);
  REQUIRE(value == 11, "%d by both addresses", value);
  REQUIRE(PointerAttribute<unsigned long long>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, first) ==
              PointerAttribute<unsigned long long>(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID,
                                                   second + kGranule),
          "one block");
  // Work under way is waited for.
  Add<<<64, 256>>>(one, kGranule / sizeof(int), 1);
  DRIVER_CHECK(DRIVER(cuMemUnmap)(first, kGranule));
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(other + 999) == 12, "the last kernel");
  // Memory mapped anew has no rights left over.
  DRIVER_CHECK(DRIVER(cuMemMap)(first, kGranule, 0, handle, 0));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemsetD32)(first, 1, 16));
  DRIVER_CHECK(DRIVER(cuMemUnmap)(first, kGranule));
  DRIVER_CHECK(DRIVER(cuMemUnmap)(second + kGranule, kGranule));
  DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemMap)(first, kGranule, 0, handle, 0));
}

// Device 0 has written, 1 may only read, 2 may not even that; each finds out on its own.
void Rights() {
  const CUmemGenericAllocationHandle handle = CreateOn(0, kGranule);
  int* data = MapFor<int>(handle, kGranule, 0, 0);
  const auto address = reinterpret_cast<CUdeviceptr>(data);
  const CUmemAccessDesc read = RightOf(1, CU_MEM_ACCESS_FLAGS_PROT_READ);
  DRIVER_CHECK(DRIVER(cuMemSetAccess)(address, kGranule, &read, 1));
  const unsigned long long expected[] = {CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                                         CU_MEM_ACCESS_FLAGS_PROT_READ,
                                         CU_MEM_ACCESS_FLAGS_PROT_NONE};
  for (int device = 0; device < 3; ++device) {
    unsigned long long flags = 99;
    const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    DRIVER_CHECK(DRIVER(cuMemGetAccess)(&flags, &location, address + 100));
    REQUIRE(flags == expected[device], "device %d has %llu", device, flags);
  }
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaMemset(data, 0, kGranule));
  Write<<<1, 1>>>(data);
  CUDA_CHECK(cudaDeviceSynchronize());
  int* result = ZeroedOn<int>(1);
  Read<<<1, 1>>>(data, result);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(result) == 1, "read by device 1");
  Write<<<1, 1>>>(data);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  result = ZeroedOn<int>(2);
  Read<<<1, 1>>>(data, result);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  // What is taken away is gone, from the memory's own device too.
  CUDA_CHECK(cudaSetDevice(0));
  const CUmemAccessDesc none = RightOf(0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  DRIVER_CHECK(DRIVER(cuMemSetAccess)(address, kGranule, &none, 1));
  Write<<<1, 1>>>(data);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  // Peer access grants nothing here.
  CUDA_CHECK(cudaSetDevice(3));
  CUDA_CHECK(cudaDeviceEnablePeerAccess(0, 0));
  Write<<<1, 1>>>(data);
  CUDA_EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

}  // namespace

int main() {
  RequireDevices(4);
  Properties();
  Pieces();
  Addresses();
  Rights();
  std::printf("PASS map_and_rights\n");
}

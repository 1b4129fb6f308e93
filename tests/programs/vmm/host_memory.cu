// Memory of the host by handles: host code and kernels use it at one address, each with the rights
// that cuMemSetAccess gives it; two processes share it by a descriptor, and poll it.
// run: --devices 2
// nvcc: -arch=sm_90
#include <csetjmp>
#include <csignal>

#include "handles.h"
#include "two_processes.h"

namespace {

constexpr int kFd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr CUmemAccess_flags kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE,
                            kRead = CU_MEM_ACCESS_FLAGS_PROT_READ,
                            kReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

__global__ void Add(uint32_t* words, uint32_t value) { words[threadIdx.x] += value; }

// Answers each of `rounds` numbers that the host puts into flags[0].
__global__ void Echo(volatile uint32_t* flags, uint32_t rounds) {
  for (uint32_t i = 1; i <= rounds; ++i) {
    while (flags[0] != i) {
    }
    flags[1] = i;
  }
}

__global__ void Hold(volatile uint32_t* flag) {
  while (*flag == 0) {
  }
}

int DeviceAttribute(CUdevice_attribute attribute) {
  int value = -1;
  DRIVER_CHECK(DRIVER(cuDeviceGetAttribute)(&value, attribute, 0));
  return value;
}

CUmemAllocationProp HostMemory(CUmemLocationType type, int handle_types = 0) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {type, 0};
  properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handle_types);
  return properties;
}

CUmemGenericAllocationHandle Create(CUmemLocationType type, int handle_types = 0) {
  const CUmemAllocationProp properties = HostMemory(type, handle_types);
  size_t granule = 0;
  DRIVER_CHECK(DRIVER(cuMemGetAllocationGranularity)(&granule, &properties,
                                                     CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  REQUIRE(granule != 0 && kGranule % granule == 0, "granularity %zu", granule);
  CUmemGenericAllocationHandle handle = 0;
  DRIVER_CHECK(DRIVER(cuMemCreate)(&handle, kGranule, &properties, 0));
  return handle;
}

CUresult AllowHost(const void* pointer, CUmemLocationType type, CUmemAccess_flags flags) {
  const CUmemAccessDesc right = {{type, 0}, flags};
  return DRIVER(cuMemSetAccess)(reinterpret_cast<CUdeviceptr>(pointer), kGranule, &right, 1);
}

unsigned long long RightOfHost(const void* pointer) {
  const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
  unsigned long long flags = 99;
  DRIVER_CHECK(DRIVER(cuMemGetAccess)(&flags, &host, reinterpret_cast<CUdeviceptr>(pointer)));
  return flags;
}

// For all devices and the host.
uint32_t* MapForAll(CUmemGenericAllocationHandle handle, CUmemLocationType type) {
  auto* words = MapFor<uint32_t>(handle, kGranule, 0, 1);
  DRIVER_CHECK(AllowHost(words, type, kReadWrite));
  return words;
}

template <class T>
T PointerAttribute(CUpointer_attribute attribute, const void* pointer) {
  T value{};
  DRIVER_CHECK(
      DRIVER(cuPointerGetAttribute)(&value, attribute, reinterpret_cast<CUdeviceptr>(pointer)));
  return value;
}

// cuda.h, cuMemCreate: what can be asked for.
void Properties() {
  REQUIRE(
      DeviceAttribute(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1 &&
          DeviceAttribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1,
      "attributes");
  CUmemGenericAllocationHandle none = 0;
  const auto refuse = [&](CUresult expected, const CUmemAllocationProp& properties) {
    size_t granule = 0;
    DRIVER_EXPECT(expected, DRIVER(cuMemCreate)(&none, kGranule, &properties, 0));
    DRIVER_EXPECT(expected, DRIVER(cuMemGetAllocationGranularity)(
                                &granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  };
  refuse(CUDA_ERROR_INVALID_VALUE, HostMemory(CU_MEM_LOCATION_TYPE_HOST, kFd));
  refuse(CUDA_ERROR_INVALID_VALUE, HostMemory(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT));
  CUmemAllocationProp second_node = HostMemory(CU_MEM_LOCATION_TYPE_HOST_NUMA);
  second_node.location.id = 1;  // without NUMA the only one is 0
  REQUIRE(DeviceAttribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID) == -1, "NUMA");
  refuse(CUDA_ERROR_INVALID_VALUE, second_node);
  REQUIRE(DeviceAttribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED) == 0, "IPC");
  refuse(CUDA_ERROR_NOT_SUPPORTED,
         HostMemory(CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_HANDLE_TYPE_FABRIC));
  const CUmemAllocationProp odd = HostMemory(CU_MEM_LOCATION_TYPE_HOST);
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemCreate)(&none, 4096, &odd, 0));
  for (const auto type : {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA}) {
    const int share = type == CU_MEM_LOCATION_TYPE_HOST ? 0 : kFd;
    const auto handle = Create(type, share);
    CUmemAllocationProp found;
    DRIVER_CHECK(DRIVER(cuMemGetAllocationPropertiesFromHandle)(&found, handle));
    REQUIRE(found.type == CU_MEM_ALLOCATION_TYPE_PINNED && found.location.type == type &&
                found.location.id == 0 && found.requestedHandleTypes == share,
            "properties");
    DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
  }
}

void OneAddress() {
  size_t before = 0, after = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&before, &total));
  const auto handle = Create(CU_MEM_LOCATION_TYPE_HOST_NUMA);
  uint32_t* words = MapForAll(handle, CU_MEM_LOCATION_TYPE_HOST_NUMA);
  CUDA_CHECK(cudaMemGetInfo(&after, &total));
  REQUIRE(before == after, "taken from a device");
  for (uint32_t i = 0; i < 32; ++i) words[i] = i;
  CUDA_CHECK(cudaSetDevice(0));
  Add<<<1, 32>>>(words, 100);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(1));
  Add<<<1, 32>>>(words, 1000);
  CUDA_CHECK(cudaDeviceSynchronize());
  for (uint32_t i = 0; i < 32; ++i) REQUIRE(words[i] == 1100 + i, "word %u: %u", i, words[i]);
  // Copies, to and from all kinds of memory. A synchronous one is over when it returns.
  uint32_t* device = ZeroedOn<uint32_t>(1, 32);
  CUDA_CHECK(cudaMemcpy(device, words, 128, cudaMemcpyHostToDevice));
  Add<<<1, 32>>>(device, 1);
  CUDA_CHECK(cudaMemcpy(words + 512, device, 128, cudaMemcpyDeviceToHost));
  for (uint32_t i = 0; i < 32; ++i) REQUIRE(words[512 + i] == 1101 + i, "copy of word %u", i);
  uint32_t own[32] = {};
  CUDA_CHECK(cudaMemcpy(own, words, sizeof own, cudaMemcpyDefault));
  REQUIRE(own[31] == 1131, "to ordinary memory: %u", own[31]);
  CUDA_CHECK(cudaMemcpy2D(words + 1024, 256, device, 64, 64, 2, cudaMemcpyDeviceToHost));
  REQUIRE(words[1024] == 1101 && words[1024 + 64] == 1117, "rows");
  CUDA_MEMCPY2D rows = {};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = words;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = reinterpret_cast<CUdeviceptr>(device);
  rows.srcPitch = rows.dstPitch = rows.WidthInBytes = 64;
  rows.Height = 2;
  DRIVER_CHECK(DRIVER(cuMemcpy2D)(&rows));
  CUDA_CHECK(cudaMemset(words, 0x11, 64));
  REQUIRE(words[0] == 0x11111111 && words[16] == 1116, "set");
  // A second mapping of the same memory.
  uint32_t* again = MapForAll(handle, CU_MEM_LOCATION_TYPE_HOST);
  again[3] = 77;
  REQUIRE(words[3] == 77 && again != words, "a second view");
  UnmapAndFree(again, kGranule);
  CUmemGenericAllocationHandle retained = 0;
  DRIVER_CHECK(DRIVER(cuMemRetainAllocationHandle)(&retained, words + 100));
  REQUIRE(retained == handle, "retained");
  DRIVER_CHECK(DRIVER(cuMemRelease)(retained));
  DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
  REQUIRE(words[3] == 77, "gone with its handle");
  UnmapAndFree(words, kGranule);
  CUDA_CHECK(cudaFree(device));
}

void Pointers() {
  const auto handle = Create(CU_MEM_LOCATION_TYPE_HOST);
  auto* words = MapFor<uint32_t>(handle, kGranule, 0, 0);
  void* host = nullptr;
  // The host has no address for it as long as it has no right.
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                DRIVER(cuPointerGetAttribute)(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                              reinterpret_cast<CUdeviceptr>(words)));
  DRIVER_CHECK(AllowHost(words, CU_MEM_LOCATION_TYPE_HOST, kRead));
  REQUIRE(PointerAttribute<void*>(CU_POINTER_ATTRIBUTE_HOST_POINTER, words + 7) == words + 7,
          "host pointer");
  REQUIRE(PointerAttribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, words + 7) ==
              reinterpret_cast<CUdeviceptr>(words + 7),
          "device pointer");
  REQUIRE(PointerAttribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, words) == CU_MEMORYTYPE_HOST,
          "type");
  REQUIRE(PointerAttribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, words) == 0, "managed");
  REQUIRE(PointerAttribute<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, words) == nullptr, "context");
  cudaPointerAttributes attributes;
  CUDA_CHECK(cudaPointerGetAttributes(&attributes, words));
  REQUIRE(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == words &&
              attributes.devicePointer == words,
          "attributes");
  CUdeviceptr base = 0;
  size_t size = 0;
  DRIVER_CHECK(
      DRIVER(cuMemGetAddressRange)(&base, &size, reinterpret_cast<CUdeviceptr>(words + 9)));
  REQUIRE(base == reinterpret_cast<CUdeviceptr>(words) && size == kGranule, "range");
  // Neither of these is what has made it.
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFreeHost)(words));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFree)(reinterpret_cast<CUdeviceptr>(words)));
  UnmapAndFree(words, kGranule);
  DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
}

sigjmp_buf g_back;
void OnFault(int) { siglongjmp(g_back, 1); }

template <class F>
bool Faults(F access) {
  if (sigsetjmp(g_back, 1) != 0) return true;
  access();
  return false;
}

// An access without a right faults, whether or not a kernel is running.
void Rights() {
  const auto handle = Create(CU_MEM_LOCATION_TYPE_HOST);
  auto* words = MapFor<uint32_t>(handle, kGranule, 0, 0);
  volatile uint32_t* look = words;
  struct sigaction action = {}, before = {};
  action.sa_handler = OnFault;
  REQUIRE(sigaction(SIGSEGV, &action, &before) == 0, "sigaction");
  uint32_t* flag = nullptr;
  CUDA_CHECK(cudaMallocHost(&flag, 4));
  const auto check = [&](CUmemAccess_flags flags) {
    REQUIRE(RightOfHost(words) == flags, "right %d", int(flags));
    for (const bool busy : {false, true}) {
      *static_cast<volatile uint32_t*>(flag) = 0;
      if (busy) Hold<<<1, 1>>>(flag);
      REQUIRE(Faults([&] { (void)look[5]; }) == (flags == kNone), "a load, %d", int(flags));
      REQUIRE(Faults([&] { look[5] = 1; }) == (flags != kReadWrite), "a store, %d", int(flags));
      *static_cast<volatile uint32_t*>(flag) = 1;
      CUDA_CHECK(cudaDeviceSynchronize());
    }
  };
  check(kNone);
  for (const CUmemAccess_flags flags : {kRead, kReadWrite, kNone, kReadWrite}) {
    DRIVER_CHECK(AllowHost(words, CU_MEM_LOCATION_TYPE_HOST, flags));
    check(flags);
  }
  REQUIRE(sigaction(SIGSEGV, &before, nullptr) == 0, "sigaction");
  CUDA_CHECK(cudaFreeHost(flag));
  // cuda.h, cuMemSetAccess: HOST_NUMA is not for memory of another place, nor a device's for hosts.
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, AllowHost(words, CU_MEM_LOCATION_TYPE_HOST_NUMA, kRead));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE,
                AllowHost(words, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, kRead));
  const auto on_device = CreateOn(0, kGranule);
  auto* device = MapFor<uint32_t>(on_device, kGranule, 0, 0);
  DRIVER_EXPECT(CUDA_ERROR_INVALID_VALUE, AllowHost(device, CU_MEM_LOCATION_TYPE_HOST, kRead));
  UnmapAndFree(device, kGranule);
  DRIVER_CHECK(DRIVER(cuMemRelease)(on_device));
  // Device 1 has no right.
  uint32_t* to = ZeroedOn<uint32_t>(1, 1);
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpy(to, words, 4, cudaMemcpyDefault));
  CUDA_CHECK(cudaFree(to));
  CUDA_CHECK(cudaSetDevice(0));
  UnmapAndFree(words, kGranule);
  DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
}

void Flags() {
  const auto handle = Create(CU_MEM_LOCATION_TYPE_HOST_NUMA);
  uint32_t* words = MapForAll(handle, CU_MEM_LOCATION_TYPE_HOST_NUMA);
  volatile uint32_t* flags = words;
  Echo<<<1, 1>>>(words, 10);
  for (uint32_t i = 1; i <= 10; ++i) {
    flags[0] = i;
    while (flags[1] != i) {
    }
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  UnmapAndFree(words, kGranule);
  DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
}

// Rank 0 makes it; both use it, their hosts and their devices.
void TwoProcesses(int rank, Partner& partner) {
  CUmemGenericAllocationHandle handle = 0;
  int fd = -1;
  if (rank == 0) {
    handle = Create(CU_MEM_LOCATION_TYPE_HOST_NUMA, kFd);
    DRIVER_CHECK(DRIVER(cuMemExportToShareableHandle)(&fd, handle,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  }
  const int got = partner.ExchangeDescriptor(rank == 0 ? fd : 0);
  if (rank == 0) close(fd);
  if (rank == 1) {
    DRIVER_CHECK(DRIVER(cuMemImportFromShareableHandle)(
        &handle, reinterpret_cast<void*>(intptr_t{got}), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUmemAllocationProp found;
    DRIVER_CHECK(DRIVER(cuMemGetAllocationPropertiesFromHandle)(&found, handle));
    REQUIRE(found.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA, "imported");
  }
  close(got);
  uint32_t* words = MapForAll(handle, CU_MEM_LOCATION_TYPE_HOST_NUMA);
  volatile uint32_t* flags = words;
  if (rank == 0) words[100] = 5;
  partner.Barrier();
  if (rank == 1) {
    REQUIRE(words[100] == 5, "the other host's word: %u", words[100]);
    Add<<<1, 1>>>(words + 100, 20);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  partner.Barrier();
  REQUIRE(words[100] == 25, "after the other's kernel: %u", words[100]);
  partner.Barrier();
  // Host to host: neither device does anything.
  for (uint32_t i = 1; i <= 5; ++i) {
    if (rank == 0) flags[0] = i;
    while (flags[1 - rank] != i) {
    }
    if (rank == 1) flags[1] = i;
  }
  partner.Barrier();
  if (rank == 0) flags[0] = flags[1] = 0;
  partner.Barrier();
  // The host of one and the kernel of the other.
  if (rank == 1) {
    Echo<<<1, 1>>>(words, 5);
  } else {
    for (uint32_t i = 1; i <= 5; ++i) {
      flags[0] = i;
      while (flags[1] != i) {
      }
    }
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  partner.Barrier();
  UnmapAndFree(words, kGranule);
  DRIVER_CHECK(DRIVER(cuMemRelease)(handle));
}

void Play(int rank, Partner partner) {
  RequireDevices(2);
  CUDA_CHECK(cudaSetDevice(rank));
  TwoProcesses(rank, partner);
  if (rank == 1) return;
  Properties();
  OneAddress();
  CUDA_CHECK(cudaSetDevice(0));
  Pointers();
  Rights();
  Flags();
}

}  // namespace

int main() {
  const int child = RunTwoProcesses(Play);
  REQUIRE(child == 0, "rank 1 ended with %d", child);
  std::printf("PASS host_memory\n");
}

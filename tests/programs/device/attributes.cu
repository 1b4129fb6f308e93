// What a device says about itself: the properties agree with the attributes, and both with an H100
// behind NVSwitch; limits, flags, names.
//
// finds: api_error
#include <cstring>

#include "driver.h"

namespace {

int Get(cudaDeviceAttr attribute, int device = 0) {
  int value = -1;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

}  // namespace

int main() {
  RequireDevices(2);
  cudaDeviceProp prop;
  CUDA_CHECK(cudaGetDeviceProperties(&prop, 1));
  REQUIRE(prop.major == 9 && prop.minor == 0, "compute capability %d.%d", prop.major, prop.minor);
  REQUIRE(prop.multiProcessorCount == 132 && prop.warpSize == 32, "SMs");
  REQUIRE(prop.maxThreadsPerBlock == 1024 && prop.maxThreadsPerMultiProcessor == 2048 &&
              prop.maxBlocksPerMultiProcessor == 32 && prop.regsPerBlock == 65536 &&
              prop.regsPerMultiprocessor == 65536,
          "limits of an SM");
  REQUIRE(prop.sharedMemPerBlock == 49152 && prop.sharedMemPerBlockOptin == 232448 &&
              prop.sharedMemPerMultiprocessor == 233472 && prop.reservedSharedMemPerBlock == 1024,
          "shared memory");
  REQUIRE(prop.maxGridSize[0] == 2147483647 && prop.maxGridSize[2] == 65535 &&
              prop.maxThreadsDim[2] == 64,
          "shapes");
  REQUIRE(prop.totalConstMem == 65536 && prop.l2CacheSize == 50 << 20, "memories");
  REQUIRE(prop.concurrentKernels && prop.cooperativeLaunch && prop.clusterLaunch &&
              prop.unifiedAddressing && prop.canMapHostMemory && prop.streamPrioritiesSupported,
          "what it can do");
  REQUIRE(!prop.hostNativeAtomicSupported && !prop.integrated && !prop.pageableMemoryAccess,
          "what it cannot");
  REQUIRE(prop.maxTexture1D == 131072 && prop.maxTexture2D[1] == 65536 &&
              prop.maxTexture3D[2] == 16384 && prop.maxSurface2D[0] == 131072,
          "textures");
  REQUIRE(prop.totalGlobalMem >= size_t(79) << 30, "%zu bytes", prop.totalGlobalMem);

  // Both ways to ask give one answer.
  REQUIRE(Get(cudaDevAttrMultiProcessorCount) == prop.multiProcessorCount, "SMs");
  REQUIRE(Get(cudaDevAttrMaxSharedMemoryPerBlockOptin) == int(prop.sharedMemPerBlockOptin), "shared");
  REQUIRE(Get(cudaDevAttrPciBusId, 1) == prop.pciBusID, "bus");
  REQUIRE(Get(cudaDevAttrHostNativeAtomicSupported) == 0, "host atomics");
  int value = 0;
  DRIVER_CHECK(DRIVER(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
  REQUIRE(value == 1, "clusters");
  DRIVER_CHECK(DRIVER(cuDeviceGetAttribute)(
      &value, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
  REQUIRE(value == 1, "stream memory operations");
  CUDA_EXPECT(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, cudaDeviceAttr(100000), 0));
  CUDA_EXPECT(cudaErrorInvalidDevice,
              cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1000));
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaSetDevice(1000));

  // Between devices: peers, with native atomics over the links.
  CUDA_CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
  REQUIRE(value == 1, "peer access");
  CUDA_CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, 0, 1));
  REQUIRE(value == 1, "peer atomics");
  const cudaAtomicOperation operations[2] = {cudaAtomicOperationIntegerAdd, cudaAtomicOperationCAS};
  unsigned capabilities[2] = {};
  CUDA_CHECK(cudaDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 1));
  REQUIRE((capabilities[0] & cudaAtomicCapabilityScalar64) != 0 &&
              (capabilities[1] & cudaAtomicCapabilityScalar32) != 0,
          "capabilities %x %x", capabilities[0], capabilities[1]);
  CUDA_CHECK(cudaDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 0));
  REQUIRE(capabilities[0] == 0 && capabilities[1] == 0, "host capabilities");

  // Names: PCI bus ids and UUIDs differ and lead back.
  char bus[2][32];
  CUuuid uuid[2];
  for (int d = 0; d < 2; ++d) {
    CUDA_CHECK(cudaDeviceGetPCIBusId(bus[d], sizeof bus[d], d));
    int found = -1;
    CUDA_CHECK(cudaDeviceGetByPCIBusId(&found, bus[d]));
    REQUIRE(found == d, "%s is device %d", bus[d], found);
    DRIVER_CHECK(DRIVER(cuDeviceGetUuid)(&uuid[d], d));
  }
  REQUIRE(std::strcmp(bus[0], bus[1]) != 0, "two devices at %s", bus[0]);
  REQUIRE(std::memcmp(&uuid[0], &uuid[1], sizeof uuid[0]) != 0, "one UUID for two");
  REQUIRE(std::memcmp(&uuid[1], &prop.uuid, sizeof uuid[1]) == 0, "the properties' UUID");

  // Limits and flags are what was set last.
  size_t limit = 0;
  CUDA_CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  CUDA_CHECK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  REQUIRE(limit == 4096, "stack size %zu", limit);
  CUDA_EXPECT(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&limit, cudaLimit(999)));
  CUDA_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  unsigned flags = 0;
  CUDA_CHECK(cudaGetDeviceFlags(&flags));
  REQUIRE((flags & cudaDeviceScheduleBlockingSync) != 0, "flags %u", flags);
  cudaFuncCache cache;
  CUDA_CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
  CUDA_CHECK(cudaDeviceGetCacheConfig(&cache));

  // Asking for functions: by version, and what is not there.
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault,
                                              &found));
  REQUIRE(found == cudaDriverEntryPointSuccess && function != nullptr, "cuMemAlloc");
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, cudaEnableDefault,
                                              &found));
  REQUIRE(found == cudaDriverEntryPointSymbolNotFound && function == nullptr, "cuNoSuchThing");
  // The form that the program knows by its version, not the latest.
  void* forms[3];
  const unsigned versions[] = {10010, 11080, 13000};
  for (int i = 0; i < 3; ++i) {
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo", &forms[i], versions[i],
                                                cudaEnableDefault, &found));
    REQUIRE(found == cudaDriverEntryPointSuccess && forms[i] != nullptr, "form %d", i);
  }
  REQUIRE(forms[0] != forms[1] && forms[1] != forms[2] && forms[0] != forms[2], "one for all");
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuMulticastCreate", &function, 12000,
                                              cudaEnableDefault, &found));
  REQUIRE(found == cudaDriverEntryPointVersionNotSufficent && function == nullptr,
          "cuMulticastCreate is of 12.1");
  int version = 0;
  CUDA_CHECK(cudaRuntimeGetVersion(&version));
  REQUIRE(version == CUDART_VERSION, "version %d", version);
  std::printf("PASS attributes\n");
  return 0;
}

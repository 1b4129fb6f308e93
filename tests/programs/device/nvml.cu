// What management tools and NCCL ask NVML about devices and links is what CUDA and the profile say.
// run: --profile h100x8
// run mesh: --profile h100x4-mesh | mesh
// run pcie: --profile l40s-pcie8 | pcie
// run visible: --profile h100x8 | visible
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "check.h"

#define EXPECT(condition) REQUIRE(condition, "%s", #condition)

namespace {

void* g_library = nullptr;

template <class... Arguments>
int Ask(const char* name, Arguments... arguments) {
  void* function = dlsym(g_library, name);
  if (function == nullptr) {
    std::printf("no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem;
  char id[32];
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long value;
};

}  // namespace

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "switch";
  if (std::strcmp(kind, "visible") == 0) setenv("CUDA_VISIBLE_DEVICES", "2", 1);
  g_library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  EXPECT(g_library != nullptr);
  unsigned count = 0;
  EXPECT(Ask("nvmlDeviceGetCount_v2", &count) == 1);  // not initialised
  EXPECT(Ask("nvmlInit_v2") == 0);
  EXPECT(Ask("nvmlDeviceGetCount_v2", &count) == 0);
  EXPECT(count == (std::strcmp(kind, "mesh") == 0 ? 4u : 8u));

  void *device = nullptr, *other = nullptr, *same = nullptr;
  EXPECT(Ask("nvmlDeviceGetHandleByIndex_v2", 2u, &device) == 0);
  EXPECT(Ask("nvmlDeviceGetHandleByIndex_v2", 3u, &other) == 0);
  EXPECT(Ask("nvmlDeviceGetHandleByIndex_v2", 99u, &same) == 2);

  // The same device as CUDA's.
  const int ordinal = std::strcmp(kind, "visible") == 0 ? 0 : 2;
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal));
  char text[96];
  EXPECT(Ask("nvmlDeviceGetName", device, text, 96u) == 0 &&
         std::strcmp(text, properties.name) == 0);
  EXPECT(Ask("nvmlDeviceGetName", device, text, 2u) == 7);
  char uuid[96] = "GPU-";
  for (int i = 0; i < 16; ++i)
    std::sprintf(uuid + std::strlen(uuid), i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                 static_cast<unsigned char>(properties.uuid.bytes[i]));
  EXPECT(Ask("nvmlDeviceGetUUID", device, text, 96u) == 0 && std::strcmp(text, uuid) == 0);
  PciInfo pci;
  EXPECT(Ask("nvmlDeviceGetPciInfo_v3", device, &pci) == 0);
  EXPECT(static_cast<int>(pci.bus) == properties.pciBusID);
  EXPECT(Ask("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(pci.id), &same) == 0);
  EXPECT(same == device);
  int major = 0, minor = 0;
  EXPECT(Ask("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == 0);
  EXPECT(major == properties.major && minor == properties.minor);
  unsigned long long memory[3];
  EXPECT(Ask("nvmlDeviceGetMemoryInfo", device, memory) == 0);
  EXPECT(memory[0] == properties.totalGlobalMem && memory[0] == memory[1] + memory[2]);

  // Links: eighteen to the switch, as many to three peers together, none.
  FieldValue field = {91, 0, 0, 0, 0, 0, 0};
  EXPECT(Ask("nvmlDeviceGetFieldValues", device, 1, &field) == 0);
  unsigned active = 0;
  int status = -1;
  EXPECT(Ask("nvmlDeviceGetP2PStatus", device, other, 2, &status) == 0);
  if (std::strcmp(kind, "pcie") == 0) {
    EXPECT(static_cast<unsigned>(field.value) == 0);
    EXPECT(Ask("nvmlDeviceGetNvLinkState", device, 0u, &active) == 3);
    EXPECT(status != 0);
  } else {
    EXPECT(static_cast<unsigned>(field.value) == 18);
    EXPECT(Ask("nvmlDeviceGetNvLinkState", device, 17u, &active) == 0 && active == 1);
    int type = -1;
    EXPECT(Ask("nvmlDeviceGetNvLinkRemoteDeviceType", device, 0u, &type) == 0);
    EXPECT(type == (std::strcmp(kind, "mesh") == 0 ? 0 : 2));
    EXPECT(status == 0);
  }
  EXPECT(Ask("nvmlShutdown") == 0);
  std::puts("ok");
}

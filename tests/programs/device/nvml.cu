// What management tools and NCCL ask NVML about devices and links is what CUDA and the profile say.
// run: --profile h100x8
// run mesh: --profile h100x4-mesh | mesh
// run pcie: --profile l40s-pcie8 | pcie
// run visible: --profile h100x8 | visible
#include <dlfcn.h>
#include <unistd.h>

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

constexpr unsigned kDataSent = 138, kDataReceived = 139, kRawSent = 140, kRawReceived = 141;
constexpr unsigned kAllLinks = ~0u;

// What NVLinks have carried, in KiB.
unsigned long long Carried(void* device, unsigned counter, unsigned link = kAllLinks) {
  FieldValue field = {counter, link, 0, 0, 0, 0, 0};
  EXPECT(Ask("nvmlDeviceGetFieldValues", device, 1, &field) == 0);
  EXPECT(field.result == 0 && field.type == 3);
  return field.value;
}

// A copy from one device to another passes the links of both, in equal parts.
void Traffic(void* from, int from_device, void* to, int to_device, unsigned links) {
  constexpr std::size_t kBytes = 18 << 20;
  void *source = nullptr, *target = nullptr;
  CUDA_CHECK(cudaSetDevice(from_device));
  CUDA_CHECK(cudaMalloc(&source, kBytes));
  CUDA_CHECK(cudaSetDevice(to_device));
  CUDA_CHECK(cudaMalloc(&target, kBytes));
  EXPECT(Carried(from, kDataSent) == 0 && Carried(to, kRawReceived) == 0);
  CUDA_CHECK(cudaMemcpyPeer(target, to_device, source, from_device, kBytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  EXPECT(Carried(from, kDataSent) == kBytes >> 10 && Carried(to, kDataReceived) == kBytes >> 10);
  EXPECT(Carried(from, kDataReceived) == 0 && Carried(to, kDataSent) == 0);
  EXPECT(Carried(from, kRawSent) > kBytes >> 10 &&
         Carried(to, kRawReceived) == Carried(from, kRawSent));
  unsigned used = 0;
  for (unsigned link = 0; link < 18; ++link) {
    const unsigned long long carried = Carried(from, kDataSent, link);
    if (carried == 0) continue;
    EXPECT(carried == (kBytes >> 10) / links);
    ++used;
  }
  EXPECT(used == links);
  FieldValue beyond = {kDataSent, 18, 0, 0, 0, 0, 0};
  EXPECT(Ask("nvmlDeviceGetFieldValues", from, 1, &beyond) == 0 && beyond.result == 3);
}

// Which devices are how near, by the count alone and with a list.
void Nearest(void* device, int level, unsigned expected) {
  void* devices[8];
  unsigned count = 0;
  EXPECT(Ask("nvmlDeviceGetTopologyNearestGpus", device, level, &count,
             static_cast<void**>(nullptr)) == 0 &&
         count == expected);
  count = 8;
  EXPECT(Ask("nvmlDeviceGetTopologyNearestGpus", device, level, &count,
             static_cast<void**>(devices)) == 0 &&
         count == expected);
  for (unsigned i = 0; i < count; ++i) {
    int found = -1;
    EXPECT(Ask("nvmlDeviceGetTopologyCommonAncestor", device, devices[i], &found) == 0);
    EXPECT(found == level);
  }
}

// What a simulated device has not, or the node does not measure.
void NotSupported(void* device) {
  unsigned number = 0;
  unsigned long long big = 0;
  unsigned long set[4];
  unsigned rates[2];
  EXPECT(Ask("nvmlDeviceGetUtilizationRates", device, rates) == 3);
  EXPECT(Ask("nvmlDeviceGetTemperature", device, 0, &number) == 3);
  EXPECT(Ask("nvmlDeviceGetPowerUsage", device, &number) == 3);
  EXPECT(Ask("nvmlDeviceGetTotalEnergyConsumption", device, &big) == 3);
  EXPECT(Ask("nvmlDeviceGetCpuAffinity", device, 4u, static_cast<unsigned long*>(set)) == 3);
  EXPECT(Ask("nvmlDeviceGetMemoryAffinity", device, 4u, static_cast<unsigned long*>(set), 0u) == 3);
  EXPECT(Ask("nvmlDeviceGetNvLinkUtilizationCounter", device, 0u, 0u, &big, &big) == 3);
  EXPECT(Ask("nvmlDeviceGetCpuAffinity", device, 0u, static_cast<unsigned long*>(set)) == 2);
  EXPECT(Ask("nvmlDeviceGetPowerUsage", static_cast<void*>(nullptr), &number) == 2);
}

// This process alone, in both layouts of the list, and nothing that draws.
void Processes(void* device) {
  struct Old {
    unsigned pid;
    unsigned long long used;
  } old = {};
  struct New {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
  } current = {};
  unsigned count = 1;
  EXPECT(Ask("nvmlDeviceGetComputeRunningProcesses", device, &count, &old) == 0 && count == 1);
  EXPECT(Ask("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, &current) == 0);
  EXPECT(count == 1 && current.pid == static_cast<unsigned>(getpid()) && old.pid == current.pid);
  EXPECT(current.gpu_instance == ~0u && current.compute_instance == ~0u);
  EXPECT(old.used == current.used);
  EXPECT(Ask("nvmlDeviceGetGraphicsRunningProcesses_v3", device, &count, &current) == 0);
  EXPECT(count == 0);
}

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

  unsigned mhz = 0;
  EXPECT(Ask("nvmlDeviceGetClockInfo", device, 1, &mhz) == 0);
  int khz = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, ordinal));
  EXPECT(mhz == static_cast<unsigned>(khz) / 1000);
  EXPECT(Ask("nvmlDeviceGetClockInfo", device, 3, &mhz) == 3);
  EXPECT(Ask("nvmlDeviceGetClockInfo", device, 99, &mhz) == 2);
  NotSupported(device);
  Processes(device);

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
  if (std::strcmp(kind, "switch") == 0 || std::strcmp(kind, "pcie") == 0) {
    Nearest(device, 10, 1);  // two devices on each PCIe switch, two switches on each CPU
    Nearest(device, 20, 0);
    Nearest(device, 40, 2);
    Nearest(device, 50, 4);
  }
  if (std::strcmp(kind, "switch") == 0) Traffic(device, 2, other, 3, 18);
  if (std::strcmp(kind, "mesh") == 0) Traffic(device, 2, other, 3, 6);
  EXPECT(Ask("nvmlShutdown") == 0);
  std::puts("ok");
}

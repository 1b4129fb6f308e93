// Prints as JSON what NVML and CUDA tell a program of its host, for the comparison in smi_test.cpp.
// The matrix is made as a tool makes it that knows nothing of profiles: from the far ends of the
// active NVLinks, and from the common ancestor where there are none.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

template <class... Arguments>
int Ask(void* library, const char* name, Arguments... arguments) {
  void* function = dlsym(library, name);
  if (function == nullptr) {
    std::fprintf(stderr, "no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

void* g_nvml = nullptr;

// A call that must succeed.
template <class... Arguments>
void Nvml(const char* name, Arguments... arguments) {
  const int result = Ask(g_nvml, name, arguments...);
  if (result == 0) return;
  std::fprintf(stderr, "%s: %d\n", name, result);
  std::exit(1);
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
struct Memory {
  unsigned long long total, free, used;
};

std::string BusIdOf(void* device) {
  PciInfo pci;
  Nvml("nvmlDeviceGetPciInfo_v3", device, &pci);
  return pci.id;
}

unsigned LinksBetween(void* a, void* b) {
  int status = -1;
  Nvml("nvmlDeviceGetP2PStatus", a, b, 2, &status);
  unsigned links = 0;
  for (unsigned link = 0; link < 18; ++link) {
    unsigned active = 0;
    if (Ask(g_nvml, "nvmlDeviceGetNvLinkState", a, link, &active) != 0 || active == 0) continue;
    int type = -1;
    PciInfo remote;
    Nvml("nvmlDeviceGetNvLinkRemoteDeviceType", a, link, &type);
    Nvml("nvmlDeviceGetNvLinkRemotePciInfo_v2", a, link, &remote);
    const bool to_switch = type == 2;
    if (to_switch ? status == 0 : BusIdOf(b) == remote.id) ++links;
  }
  return links;
}

std::string LinkName(void* a, void* b) {
  if (a == b) return "X";
  if (const unsigned links = LinksBetween(a, b); links > 0) return "NV" + std::to_string(links);
  int level = -1;
  Nvml("nvmlDeviceGetTopologyCommonAncestor", a, b, &level);
  switch (level) {
    case 10:
      return "PIX";
    case 20:
      return "PXB";
    case 30:
      return "PHB";
    case 40:
      return "NODE";
    default:
      return "SYS";
  }
}

void PrintDevice(void* cuda, unsigned index, void* device) {
  char name[96], uuid[96];
  Nvml("nvmlDeviceGetName", device, name, 96u);
  Nvml("nvmlDeviceGetUUID", device, uuid, 96u);
  Memory memory;
  Nvml("nvmlDeviceGetMemoryInfo", device, &memory);
  int major = 0, minor = 0, sms = 0;
  Nvml("nvmlDeviceGetCudaComputeCapability", device, &major, &minor);
  unsigned clock = 0;
  Nvml("nvmlDeviceGetMaxClockInfo", device, 1, &clock);
  FieldValue field = {91, 0, 0, 0, 0, 0, 0};
  Nvml("nvmlDeviceGetFieldValues", device, 1, &field);
  if (Ask(cuda, "cuDeviceGetAttribute", &sms, 16, static_cast<int>(index)) != 0) std::exit(1);
  std::printf("%s{\"index\": %u, \"name\": \"%s\", \"uuid\": \"%s\", \"bus_id\": \"%s\", ",
              index == 0 ? "" : ",\n", index, name, uuid, BusIdOf(device).c_str());
  std::printf("\"memory_total\": %llu, \"memory_used\": %llu, \"compute_capability\": \"%d.%d\", ",
              memory.total, memory.used, major, minor);
  std::printf("\"sms\": %d, \"clock_mhz\": %u, \"nvlinks\": %u}", sms, clock,
              static_cast<unsigned>(field.value));
}

}  // namespace

int main() {
  g_nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_nvml == nullptr || cuda == nullptr || Ask(cuda, "cuInit", 0u) != 0) return 1;
  Nvml("nvmlInit_v2");
  char driver[96];
  int version = 0;
  unsigned count = 0;
  Nvml("nvmlSystemGetDriverVersion", driver, 96u);
  Nvml("nvmlSystemGetCudaDriverVersion", &version);
  Nvml("nvmlDeviceGetCount_v2", &count);
  std::vector<void*> devices(count);
  for (unsigned i = 0; i < count; ++i) Nvml("nvmlDeviceGetHandleByIndex_v2", i, &devices[i]);
  std::printf("{\"driver_version\": \"%s\", \"cuda_version\": \"%d.%d\", \"gpus\": [", driver,
              version / 1000, version % 1000 / 10);
  for (unsigned i = 0; i < count; ++i) PrintDevice(cuda, i, devices[i]);
  std::printf("],\n\"links\": [");
  for (unsigned i = 0; i < count; ++i) {
    std::printf("%s[", i == 0 ? "" : ",\n");
    for (unsigned k = 0; k < count; ++k)
      std::printf("%s\"%s\"", k == 0 ? "" : ", ", LinkName(devices[i], devices[k]).c_str());
    std::printf("]");
  }
  std::printf("]}\n");
  return 0;
}

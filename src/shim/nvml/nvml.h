// The part of NVML's binary interface that libnvidia-ml.so.1 offers here: numbers and layouts as
// NVML's API reference gives them. The toolkit's nvml.h is not needed, and often not installed.
#pragma once

#define ALLRANKS_NVML extern "C" [[gnu::visibility("default")]]

enum nvmlReturn_t : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_UNKNOWN = 999,
};

struct nvmlDevice_st;
using nvmlDevice_t = nvmlDevice_st*;

// Of nvmlDeviceGetPciInfo_v3 and nvmlDeviceGetNvLinkRemotePciInfo_v2.
struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device;
  unsigned pciDeviceId, pciSubSystemId;
  char busId[32];
};
// Of the versions before; the last four are reserved.
struct nvmlPciInfoLegacy_t {
  char busId[16];
  unsigned domain, bus, device;
  unsigned pciDeviceId, pciSubSystemId;
  unsigned reserved[4];
};

struct nvmlMemory_t {
  unsigned long long total, free, used;
};
struct nvmlMemory_v2_t {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct nvmlUtilization_t {
  unsigned gpu, memory;
};
struct nvmlProcessInfo_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
};
// Of versions 2 and 3.
struct nvmlProcessInfo_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};

union nvmlValue_t {
  double dVal;
  unsigned uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  signed long long sllVal;
};
struct nvmlFieldValue_t {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  int valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};
inline constexpr unsigned NVML_FI_DEV_NVLINK_LINK_COUNT = 91, NVML_FI_DEV_NVLINK_GET_SPEED = 164,
                          NVML_FI_DEV_NVLINK_GET_STATE = 165, NVML_FI_DEV_NVLINK_GET_VERSION = 166;
inline constexpr unsigned NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138,
                          NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139,
                          NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX = 140,
                          NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX = 141;
inline constexpr unsigned NVML_ALL_LINKS = ~0u;  // as nvmlFieldValue_t::scopeId of these four
inline constexpr int NVML_VALUE_TYPE_UNSIGNED_INT = 1, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3;

inline constexpr int NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2,
                     NVML_CLOCK_VIDEO = 3;

inline constexpr unsigned NVML_NVLINK_MAX_LINKS = 18;
inline constexpr int NVML_NVLINK_DEVICE_TYPE_GPU = 0, NVML_NVLINK_DEVICE_TYPE_SWITCH = 2;

enum nvmlGpuTopologyLevel_t : int {
  NVML_TOPOLOGY_INTERNAL = 0,
  NVML_TOPOLOGY_SINGLE = 10,
  NVML_TOPOLOGY_MULTIPLE = 20,
  NVML_TOPOLOGY_HOSTBRIDGE = 30,
  NVML_TOPOLOGY_NODE = 40,
  NVML_TOPOLOGY_SYSTEM = 50,
};

inline constexpr int NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5;
inline constexpr int NVML_P2P_CAPS_INDEX_NVLINK = 2;

inline constexpr unsigned char NVML_GPU_FABRIC_STATE_NOT_SUPPORTED = 0,
                               NVML_GPU_FABRIC_STATE_COMPLETED = 3;
struct nvmlGpuFabricInfo_t {
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned cliqueId;
  unsigned char state;
};
struct nvmlGpuFabricInfoV_t {
  unsigned version;
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned cliqueId;
  unsigned char state;
  unsigned healthMask;
  unsigned char healthSummary;  // from version 3 on
};

struct nvmlConfComputeSystemState_t {
  unsigned environment, ccFeature, devToolsMode;
};
struct nvmlSystemConfComputeSettings_t {
  unsigned version, environment, ccFeature, devToolsMode, multiGpuMode;
};

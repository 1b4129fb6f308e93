// Launches. Parameters are packed here, as the node described the kernel's;
// everything else about a launch is judged by the node.
#include <string.h>

#include "shim/cuda/capture.h"
#include "shim/cuda/driver.h"

namespace allranks::shim {
namespace {

// 0: no such event, or one that measures time, which these cannot.
std::uint64_t EventNumber(CUevent handle) {
  const Event* event = TheDriver().events.Find(handle);
  if (event == nullptr || (event->flags & CU_EVENT_DISABLE_TIMING) == 0) return 0;
  return event->id;
}

}  // namespace

CUresult PackParameters(const wire::GetKernelReply& info, void** pointers, void** extra,
                        wire::Blob* out) {
  out->assign(info.param_bytes, std::byte{0});
  if (extra != nullptr) {
    const void* buffer = nullptr;
    std::size_t size = 0;
    for (void** entry = extra; *entry != CU_LAUNCH_PARAM_END; entry += 2) {
      if (*entry == CU_LAUNCH_PARAM_BUFFER_POINTER) {
        buffer = entry[1];
      } else if (*entry == CU_LAUNCH_PARAM_BUFFER_SIZE) {
        size = *static_cast<const std::size_t*>(entry[1]);
      } else {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    if (buffer == nullptr || size > out->size()) return CUDA_ERROR_INVALID_VALUE;
    memcpy(out->data(), buffer, size);
    return CUDA_SUCCESS;
  }
  if (info.param_offsets.empty()) return CUDA_SUCCESS;
  if (pointers == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < info.param_offsets.size(); ++i) {
    const std::size_t offset = info.param_offsets[i], size = info.param_sizes[i];
    if (offset + size > out->size()) return CUDA_ERROR_UNKNOWN;
    memcpy(out->data() + offset, pointers[i], size);
  }
  return CUDA_SUCCESS;
}

CUresult ApplyAttributes(const CUlaunchAttribute* attributes, unsigned count,
                         wire::Launch* launch) {
  for (unsigned i = 0; i < count; ++i) {
    const CUlaunchAttribute& attribute = attributes[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        launch->cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        launch->cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                           attribute.value.clusterDim.z};
        if (launch->cluster.x == 0 || launch->cluster.y == 0 || launch->cluster.z == 0)
          return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        launch->has_priority = true;
        launch->priority = attribute.value.priority;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        launch->programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        if (attribute.value.memSyncDomain > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE)
          return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        launch->trigger_event = EventNumber(attribute.value.programmaticEvent.event);
        launch->trigger_at_start = attribute.value.programmaticEvent.triggerAtBlockStart != 0;
        if (launch->trigger_event == 0) return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        // Marked when every block has begun.
        launch->trigger_event = EventNumber(attribute.value.launchCompletionEvent.event);
        launch->trigger_at_start = true;
        if (launch->trigger_event == 0) return CUDA_ERROR_INVALID_VALUE;
        break;
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return CUDA_ERROR_NOT_SUPPORTED;
      default:
        break;  // hints
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

// Larger clusters need cudaFuncAttributeNonPortableClusterSizeAllowed.
constexpr std::uint64_t kPortableClusterSize = 8;

// `launch` has everything but stream, kernel and parameters; what its attributes say is in it.
CUresult Launch(bool per_thread, wire::Launch* launch, CUfunction handle, CUstream stream,
                void** pointers, void** extra, const CUlaunchAttribute* attributes,
                unsigned attribute_count) {
  Context* context;
  CUresult result = Current(&context);
  if (result != CUDA_SUCCESS) return result;
  if (Stream* capturing = Capturing(stream, per_thread)) {
    if (capturing->device != context->device) return CUDA_ERROR_INVALID_HANDLE;
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = handle;
    params.gridDimX = launch->grid.x;
    params.gridDimY = launch->grid.y;
    params.gridDimZ = launch->grid.z;
    params.blockDimX = launch->block.x;
    params.blockDimY = launch->block.y;
    params.blockDimZ = launch->block.z;
    params.sharedMemBytes = launch->dynamic_shared;
    params.kernelParams = pointers;
    params.extra = extra;
    return CaptureLaunch(capturing, params, attributes, attribute_count);
  }
  result = ResolveStream(stream, per_thread, &launch->stream);
  if (result != CUDA_SUCCESS) return result;
  Stream* located;
  LocateStream(stream, per_thread, &launch->stream, &located);
  if (launch->stream.device != context->device) return CUDA_ERROR_INVALID_HANDLE;
  Function* function;
  result = ResolveLaunched(handle, context->device, &function);
  if (result != CUDA_SUCCESS) return result;
  if (function->module->device != context->device) return CUDA_ERROR_INVALID_HANDLE;
  const std::uint64_t cluster =
      std::uint64_t{launch->cluster.x} * launch->cluster.y * launch->cluster.z;
  if (cluster > kPortableClusterSize && !function->non_portable_cluster)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  launch->kernel = function->info.kernel;
  if (!launch->has_priority && located != nullptr) {
    const auto set = located->attributes.find(CU_LAUNCH_ATTRIBUTE_PRIORITY);
    if (set != located->attributes.end()) {
      launch->has_priority = true;
      launch->priority = set->second.priority;
    }
  }
  result = PackParameters(function->info, pointers, extra, &launch->params);
  if (result != CUDA_SUCCESS) return result;
  return Result(Call(*launch));
}

CUresult Do_cuLaunchKernel(bool per_thread, CUfunction function, unsigned grid_x, unsigned grid_y,
                           unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared, CUstream stream, void** pointers, void** extra,
                           bool cooperative) {
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || block_x == 0 || block_y == 0 || block_z == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  wire::Launch launch;
  launch.grid = {grid_x, grid_y, grid_z};
  launch.block = {block_x, block_y, block_z};
  launch.dynamic_shared = shared;
  launch.cooperative = cooperative;
  CUlaunchAttribute attribute;
  memset(&attribute, 0, sizeof attribute);
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  return Launch(per_thread, &launch, function, stream, pointers, extra, &attribute,
                cooperative ? 1 : 0);
}

CUresult Do_cuLaunchCooperativeKernel(bool per_thread, CUfunction function, unsigned grid_x,
                                      unsigned grid_y, unsigned grid_z, unsigned block_x,
                                      unsigned block_y, unsigned block_z, unsigned shared,
                                      CUstream stream, void** pointers) {
  return Do_cuLaunchKernel(per_thread, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                           shared, stream, pointers, nullptr, true);
}

CUresult Do_cuLaunchKernelEx(bool per_thread, const CUlaunchConfig* config, CUfunction function,
                             void** pointers, void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::Launch launch;
  launch.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  launch.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0 || launch.block.x == 0 ||
      launch.block.y == 0 || launch.block.z == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  launch.dynamic_shared = config->sharedMemBytes;
  if (config->numAttrs != 0 && config->attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = ApplyAttributes(config->attrs, config->numAttrs, &launch);
  if (result != CUDA_SUCCESS) return result;
  return Launch(per_thread, &launch, function, config->hStream, pointers, extra, config->attrs,
                config->numAttrs);
}

}  // namespace

ALLRANKS_BOTH_STREAMS(cuLaunchKernel, _ptsz,
                      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream stream,
                       void** parameters, void** extra),
                      function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra, false)
ALLRANKS_BOTH_STREAMS(cuLaunchCooperativeKernel, _ptsz,
                      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream stream,
                       void** parameters),
                      function, gx, gy, gz, bx, by, bz, shared, stream, parameters)
ALLRANKS_BOTH_STREAMS(cuLaunchKernelEx, _ptsz,
                      (const CUlaunchConfig* config, CUfunction function, void** parameters,
                       void** extra),
                      config, function, parameters, extra)

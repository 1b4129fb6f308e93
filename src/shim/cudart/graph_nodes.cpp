// Nodes of graphs in the runtime API: kernels, copies, sets, host functions, events, children, and
// the calls that take any of them.
#include <string.h>

#include "shim/cudart/copy.h"
#include "shim/cudart/graph.h"
#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

// For both versions of the struct. False: no such kernel.
template <class Runtime, class Params>
bool ToDriver(const Runtime& from, Params* to) {
  to->kern = FindKernel(from.func);
  to->gridDimX = from.gridDim.x;
  to->gridDimY = from.gridDim.y;
  to->gridDimZ = from.gridDim.z;
  to->blockDimX = from.blockDim.x;
  to->blockDimY = from.blockDim.y;
  to->blockDimZ = from.blockDim.z;
  to->sharedMemBytes = from.sharedMemBytes;
  to->kernelParams = from.kernelParams;
  to->extra = from.extra;
  return to->kern != nullptr;
}

// `act` with the driver's form of a kernel's parameters.
template <class F>
cudaError_t WithKernel(const cudaKernelNodeParams* params, F act) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_KERNEL_NODE_PARAMS driver{};
  if (!ToDriver(*params, &driver)) return Note(cudaErrorInvalidDeviceFunction);
  return Note(KernelError(act(driver)));
}

bool ToDriver(const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to) {
  if (from.srcArray != nullptr || from.dstArray != nullptr) return false;
  to->srcMemoryType = to->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  to->srcDevice = Ptr(from.srcPtr.ptr);
  to->srcPitch = from.srcPtr.pitch;
  to->srcHeight = from.srcPtr.ysize;
  to->srcXInBytes = from.srcPos.x;
  to->srcY = from.srcPos.y;
  to->srcZ = from.srcPos.z;
  to->dstDevice = Ptr(from.dstPtr.ptr);
  to->dstPitch = from.dstPtr.pitch;
  to->dstHeight = from.dstPtr.ysize;
  to->dstXInBytes = from.dstPos.x;
  to->dstY = from.dstPos.y;
  to->dstZ = from.dstPos.z;
  to->WidthInBytes = from.extent.width;
  to->Height = from.extent.height;
  to->Depth = from.extent.depth;
  return true;
}

CUDA_MEMCPY3D Line(void* dst, const void* src, std::size_t size) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = Ptr(src);
  copy.dstDevice = Ptr(dst);
  copy.WidthInBytes = size;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  return context;
}

template <class F>
cudaError_t WithCopy(const cudaMemcpy3DParms* params, F act) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_MEMCPY3D copy{};
  if (!ToDriver(*params, &copy)) return Note(cudaErrorNotSupported);
  return Note(act(copy));
}

template <class F>
cudaError_t WithLine(void* dst, const void* src, std::size_t size, F act) {
  ALLRANKS_ENTER();
  return Note(act(Line(dst, src, size)));
}

CUDA_MEMSET_NODE_PARAMS ToDriver(const cudaMemsetParams& params) {
  return {Ptr(params.dst),    params.pitch, params.value,
          params.elementSize, params.width, params.height};
}

}  // namespace

// --- kernels -----------------------------------------------------------------------------------

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, size_t count,
                                   const cudaKernelNodeParams* params) {
  return WithKernel(params, [&](const CUDA_KERNEL_NODE_PARAMS& kernel) {
    return cuGraphAddKernelNode(node, graph, before, count, &kernel);
  });
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  return WithKernel(params, [&](const CUDA_KERNEL_NODE_PARAMS& kernel) {
    return cuGraphKernelNodeSetParams(node, &kernel);
  });
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return WithKernel(params, [&](const CUDA_KERNEL_NODE_PARAMS& kernel) {
    return cuGraphExecKernelNodeSetParams(exec, node, &kernel);
  });
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_KERNEL_NODE_PARAMS driver{};
  const CUresult result = cuGraphKernelNodeGetParams(node, &driver);
  if (result != CUDA_SUCCESS) return Note(result);
  const void* kernel = driver.func != nullptr ? static_cast<const void*>(driver.func)
                                              : static_cast<const void*>(driver.kern);
  params->func = const_cast<void*>(FindHostFunction(kernel));
  params->gridDim = dim3(driver.gridDimX, driver.gridDimY, driver.gridDimZ);
  params->blockDim = dim3(driver.blockDimX, driver.blockDimY, driver.blockDimZ);
  params->sharedMemBytes = driver.sharedMemBytes;
  params->kernelParams = driver.kernelParams;
  params->extra = driver.extra;
  return cudaSuccess;
}
ALLRANKS_GRAPH_CALL(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t to, cudaGraphNode_t from),
                    cuGraphKernelNodeCopyAttributes(to, from))
ALLRANKS_GRAPH_CALL(cudaGraphKernelNodeGetAttribute,
                    (cudaGraphNode_t node, cudaLaunchAttributeID id,
                     cudaLaunchAttributeValue* value),
                    cuGraphKernelNodeGetAttribute(node, static_cast<CUlaunchAttributeID>(id),
                                                  reinterpret_cast<CUlaunchAttributeValue*>(value)))
ALLRANKS_GRAPH_CALL(
    cudaGraphKernelNodeSetAttribute,
    (cudaGraphNode_t node, cudaLaunchAttributeID id, const cudaLaunchAttributeValue* value),
    cuGraphKernelNodeSetAttribute(node, static_cast<CUlaunchAttributeID>(id),
                                  reinterpret_cast<const CUlaunchAttributeValue*>(value)))

// --- copies ------------------------------------------------------------------------------------

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, size_t count,
                                   const cudaMemcpy3DParms* params) {
  return WithCopy(params, [&](const CUDA_MEMCPY3D& copy) {
    return cuGraphAddMemcpyNode(node, graph, before, count, &copy, CurrentContext());
  });
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* before, size_t count, void* dst,
                                     const void* src, size_t size, cudaMemcpyKind) {
  return WithLine(dst, src, size, [&](const CUDA_MEMCPY3D& copy) {
    return cuGraphAddMemcpyNode(node, graph, before, count, &copy, CurrentContext());
  });
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* before, size_t count,
                                           const void* symbol, const void* src, size_t size,
                                           size_t offset, cudaMemcpyKind kind) {
  return WithSymbol(symbol, size, offset, [&](char* place) {
    return cudaGraphAddMemcpyNode1D(node, graph, before, count, place, src, size, kind);
  });
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* before, size_t count, void* dst,
                                             const void* symbol, size_t size, size_t offset,
                                             cudaMemcpyKind kind) {
  return WithSymbol(symbol, size, offset, [&](char* place) {
    return cudaGraphAddMemcpyNode1D(node, graph, before, count, dst, place, size, kind);
  });
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_MEMCPY3D copy{};
  const CUresult result = cuGraphMemcpyNodeGetParams(node, &copy);
  if (result != CUDA_SUCCESS) return Note(result);
  memset(params, 0, sizeof *params);
  const auto place = [](CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? const_cast<void*>(host) : reinterpret_cast<void*>(device);
  };
  params->srcPtr = {place(copy.srcMemoryType, copy.srcHost, copy.srcDevice), copy.srcPitch,
                    copy.WidthInBytes, copy.srcHeight};
  params->dstPtr = {place(copy.dstMemoryType, copy.dstHost, copy.dstDevice), copy.dstPitch,
                    copy.WidthInBytes, copy.dstHeight};
  params->srcPos = {copy.srcXInBytes, copy.srcY, copy.srcZ};
  params->dstPos = {copy.dstXInBytes, copy.dstY, copy.dstZ};
  params->extent = {copy.WidthInBytes, copy.Height, copy.Depth};
  params->kind = cudaMemcpyDefault;
  return cudaSuccess;
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  return WithCopy(
      params, [&](const CUDA_MEMCPY3D& copy) { return cuGraphMemcpyNodeSetParams(node, &copy); });
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src,
                                           size_t size, cudaMemcpyKind) {
  return WithLine(dst, src, size, [&](const CUDA_MEMCPY3D& copy) {
    return cuGraphMemcpyNodeSetParams(node, &copy);
  });
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                 const void* src, size_t size, size_t offset,
                                                 cudaMemcpyKind kind) {
  return WithSymbol(symbol, size, offset, [&](char* place) {
    return cudaGraphMemcpyNodeSetParams1D(node, place, src, size, kind);
  });
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* dst,
                                                   const void* symbol, size_t size, size_t offset,
                                                   cudaMemcpyKind kind) {
  return WithSymbol(symbol, size, offset, [&](char* place) {
    return cudaGraphMemcpyNodeSetParams1D(node, dst, place, size, kind);
  });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
  return WithCopy(params, [&](const CUDA_MEMCPY3D& copy) {
    return cuGraphExecMemcpyNodeSetParams(exec, node, &copy, CurrentContext());
  });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               void* dst, const void* src, size_t size,
                                               cudaMemcpyKind) {
  return WithLine(dst, src, size, [&](const CUDA_MEMCPY3D& copy) {
    return cuGraphExecMemcpyNodeSetParams(exec, node, &copy, CurrentContext());
  });
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void* symbol, const void* src,
                                                     size_t size, size_t offset,
                                                     cudaMemcpyKind kind) {
  return WithSymbol(symbol, size, offset, [&](char* place) {
    return cudaGraphExecMemcpyNodeSetParams1D(exec, node, place, src, size, kind);
  });
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       void* dst, const void* symbol, size_t size,
                                                       size_t offset, cudaMemcpyKind kind) {
  return WithSymbol(symbol, size, offset, [&](char* place) {
    return cudaGraphExecMemcpyNodeSetParams1D(exec, node, dst, place, size, kind);
  });
}

// --- sets, host functions, events, children ------------------------------------------------------

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* before, size_t count,
                                   const cudaMemsetParams* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  const CUDA_MEMSET_NODE_PARAMS driver = ToDriver(*params);
  return Note(cuGraphAddMemsetNode(node, graph, before, count, &driver, CurrentContext()));
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  CUDA_MEMSET_NODE_PARAMS driver{};
  const CUresult result = cuGraphMemsetNodeGetParams(node, &driver);
  if (result != CUDA_SUCCESS) return Note(result);
  *params = {reinterpret_cast<void*>(driver.dst),
             driver.pitch,
             driver.value,
             driver.elementSize,
             driver.width,
             driver.height};
  return cudaSuccess;
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  const CUDA_MEMSET_NODE_PARAMS driver = ToDriver(*params);
  return Note(cuGraphMemsetNodeSetParams(node, &driver));
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  const CUDA_MEMSET_NODE_PARAMS driver = ToDriver(*params);
  return Note(cuGraphExecMemsetNodeSetParams(exec, node, &driver, CurrentContext()));
}

static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
ALLRANKS_GRAPH_CALL(cudaGraphAddHostNode,
                    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before,
                     size_t count, const cudaHostNodeParams* params),
                    cuGraphAddHostNode(node, graph, before, count,
                                       reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params)))
ALLRANKS_GRAPH_CALL(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, cudaHostNodeParams* params),
                    cuGraphHostNodeGetParams(node,
                                             reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(params)))
ALLRANKS_GRAPH_CALL(
    cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const cudaHostNodeParams* params),
    cuGraphHostNodeSetParams(node, reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params)))
ALLRANKS_GRAPH_CALL(cudaGraphExecHostNodeSetParams,
                    (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams* params),
                    cuGraphExecHostNodeSetParams(
                        exec, node, reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params)))
ALLRANKS_GRAPH_CALL(cudaGraphAddChildGraphNode,
                    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before,
                     size_t count, cudaGraph_t child),
                    cuGraphAddChildGraphNode(node, graph, before, count, child))
ALLRANKS_GRAPH_CALL(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t* graph),
                    cuGraphChildGraphNodeGetGraph(node, graph))
ALLRANKS_GRAPH_CALL(cudaGraphExecChildGraphNodeSetParams,
                    (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child),
                    cuGraphExecChildGraphNodeSetParams(exec, node, child))
ALLRANKS_GRAPH_CALL(cudaGraphAddEmptyNode,
                    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before,
                     size_t count),
                    cuGraphAddEmptyNode(node, graph, before, count))
#define ALLRANKS_EVENT_NODE(kind)                                                                \
  ALLRANKS_GRAPH_CALL(cudaGraphAddEvent##kind##Node,                                             \
                      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before, \
                       size_t count, cudaEvent_t event),                                         \
                      cuGraphAddEvent##kind##Node(node, graph, before, count, event))            \
  ALLRANKS_GRAPH_CALL(cudaGraphEvent##kind##NodeGetEvent,                                        \
                      (cudaGraphNode_t node, cudaEvent_t * event),                               \
                      cuGraphEvent##kind##NodeGetEvent(node, event))                             \
  ALLRANKS_GRAPH_CALL(cudaGraphEvent##kind##NodeSetEvent,                                        \
                      (cudaGraphNode_t node, cudaEvent_t event),                                 \
                      cuGraphEvent##kind##NodeSetEvent(node, event))                             \
  ALLRANKS_GRAPH_CALL(cudaGraphExecEvent##kind##NodeSetEvent,                                    \
                      (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),           \
                      cuGraphExecEvent##kind##NodeSetEvent(exec, node, event))
ALLRANKS_EVENT_NODE(Record)
ALLRANKS_EVENT_NODE(Wait)

namespace {

// Types that need no translation have the same layout in both APIs.
cudaError_t ToDriver(const cudaGraphNodeParams& from, CUgraphNodeParams* to) {
  memset(to, 0, sizeof *to);
  static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
  switch (from.type) {
    case cudaGraphNodeTypeKernel:
      to->type = CU_GRAPH_NODE_TYPE_KERNEL;
      return ToDriver(from.kernel, &to->kernel) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    case cudaGraphNodeTypeMemcpy:
      to->type = CU_GRAPH_NODE_TYPE_MEMCPY;
      to->memcpy.copyCtx = CurrentContext();
      return ToDriver(from.memcpy.copyParams, &to->memcpy.copyParams) ? cudaSuccess
                                                                      : cudaErrorNotSupported;
    case cudaGraphNodeTypeMemset:
      to->type = CU_GRAPH_NODE_TYPE_MEMSET;
      to->memset = {Ptr(from.memset.dst),    from.memset.pitch, from.memset.value,
                    from.memset.elementSize, from.memset.width, from.memset.height,
                    CurrentContext()};
      return cudaSuccess;
    default:
      memcpy(to, &from, sizeof *to);
      return cudaSuccess;
  }
}

}  // namespace

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                             const cudaGraphNode_t* before, const cudaGraphEdgeData* data,
                             size_t count, cudaGraphNodeParams* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  CUgraphNodeParams driver;
  const cudaError_t error = ToDriver(*params, &driver);
  if (error != cudaSuccess) return Note(error);
  const CUresult result = cuGraphAddNode(node, graph, before, Driver(data), count, &driver);
  if (result == CUDA_SUCCESS && params->type == cudaGraphNodeTypeGraph)
    params->graph.graph = driver.graph.graph;
  return Note(KernelError(result));
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  CUgraphNodeParams driver;
  const cudaError_t error = ToDriver(*params, &driver);
  return Note(error != cudaSuccess ? error : KernelError(cuGraphNodeSetParams(node, &driver)));
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams* params) {
  ALLRANKS_ENTER();
  if (params == nullptr) return Note(cudaErrorInvalidValue);
  CUgraphNodeParams driver;
  const cudaError_t error = ToDriver(*params, &driver);
  return Note(error != cudaSuccess ? error
                                   : KernelError(cuGraphExecNodeSetParams(exec, node, &driver)));
}

// The nodes of a graph by kind: adding them, and their parameters. What a node is given is checked
// when it is given; what the node (the simulated one) refuses is found out by instantiation.
#include <string.h>

#include <algorithm>

#include "shim/cuda/graph.h"

namespace allranks::shim {
namespace {

// A context given with a node; null is the current one.
CUresult DeviceOf(CUcontext handle, int* device) {
  const Context* context = handle == nullptr ? CurrentContext() : TheDriver().contexts.Find(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

void PointIntoPacked(GraphNode* node, const wire::GetKernelReply& info) {
  node->pointers.clear();
  for (const std::uint32_t offset : info.param_offsets)
    node->pointers.push_back(node->packed.data() + offset);
  node->kernel.kernelParams = node->pointers.empty() ? nullptr : node->pointers.data();
  node->kernel.extra = nullptr;
}

}  // namespace

CUresult SetKernel(GraphNode* node, const CUDA_KERNEL_NODE_PARAMS& params) {
  int device = 0;
  CUresult result = DeviceOf(params.func == nullptr ? params.ctx : nullptr, &device);
  if (result != CUDA_SUCCESS) return result;
  Function* function = nullptr;
  const CUfunction handle =
      params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  result = ResolveLaunched(handle, device, &function);
  if (result != CUDA_SUCCESS) return result;
  for (const unsigned size : {params.gridDimX, params.gridDimY, params.gridDimZ, params.blockDimX,
                              params.blockDimY, params.blockDimZ}) {
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  }
  wire::Blob packed;
  result = PackParameters(function->info, params.kernelParams, params.extra, &packed);
  if (result != CUDA_SUCCESS) return result;
  node->device = function->module->device;
  node->kernel = params;
  node->packed = std::move(packed);
  PointIntoPacked(node, function->info);
  return CUDA_SUCCESS;
}

CUresult SetCopy(GraphNode* node, const CUDA_MEMCPY3D& params, CUcontext context) {
  int device = 0;
  CUresult result = DeviceOf(context, &device);
  if (result != CUDA_SUCCESS) return result;
  Region region;
  result = RegionOf(params, &region);
  if (result != CUDA_SUCCESS) return result;
  if (region.width != 0 && !IsNodeAddress(region.dst) && !IsNodeAddress(region.src))
    return CUDA_ERROR_INVALID_VALUE;
  node->device = device;
  node->copy = params;
  return CUDA_SUCCESS;
}

CUresult SetMemset(GraphNode* node, const CUDA_MEMSET_NODE_PARAMS_v2& params, CUcontext context) {
  int device = 0;
  const CUresult result = DeviceOf(context, &device);
  if (result != CUDA_SUCCESS) return result;
  const std::size_t size = params.elementSize;
  if ((size != 1 && size != 2 && size != 4) || params.height == 0 || params.width == 0 ||
      !IsNodeAddress(params.dst) || params.dst % size != 0 ||
      (params.height > 1 && params.pitch < params.width * size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  node->device = device;
  node->memset = params;
  return CUDA_SUCCESS;
}

CUresult SetHost(GraphNode* node, const CUDA_HOST_NODE_PARAMS& params) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->host = params;
  return CUDA_SUCCESS;
}

CUresult SetEvent(GraphNode* node, CUevent handle) {
  const Event* event = TheDriver().events.Find(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->event = handle;
  // A record happens where its event is; a wait may be anywhere.
  if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) node->device = event->device;
  return CUDA_SUCCESS;
}

CUresult SetSteps(GraphNode* node, unsigned count, const CUstreamBatchMemOpParams* steps,
                  unsigned flags, CUcontext context) {
  int device = 0;
  CUresult result = DeviceOf(context, &device);
  if (result != CUDA_SUCCESS) return result;
  std::vector<wire::ValueOp> ignored;
  result = TranslateValues(count, steps, &ignored);
  if (result != CUDA_SUCCESS) return result;
  if (flags != 0 || count == 0) return CUDA_ERROR_INVALID_VALUE;
  node->device = device;
  node->steps.assign(steps, steps + count);
  return CUDA_SUCCESS;
}

CUresult SetChild(GraphNode* node, Graph* child) {
  Graph* clone = CloneGraph(*child, nullptr);
  clone->child = true;
  if (node->child != nullptr) DestroyGraph(node->child);
  node->child = clone;
  return CUDA_SUCCESS;
}

void CopyParams(GraphNode* to, const GraphNode& from) {
  to->device = from.device;
  to->kernel = from.kernel;
  to->packed = from.packed;
  to->pointers.clear();
  for (const void* pointer : from.pointers) {
    const auto offset = static_cast<const std::byte*>(pointer) - from.packed.data();
    to->pointers.push_back(to->packed.data() + offset);
  }
  to->kernel.kernelParams = to->pointers.empty() ? nullptr : to->pointers.data();
  to->attributes = from.attributes;
  to->copy = from.copy;
  to->memset = from.memset;
  to->host = from.host;
  to->event = from.event;
  to->steps = from.steps;
}

CUresult SetParams(GraphNode* node, const CUgraphNodeParams& params) {
  if (params.type != node->type) return CUDA_ERROR_INVALID_VALUE;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel{};
      kernel.func = params.kernel.func;
      kernel.gridDimX = params.kernel.gridDimX;
      kernel.gridDimY = params.kernel.gridDimY;
      kernel.gridDimZ = params.kernel.gridDimZ;
      kernel.blockDimX = params.kernel.blockDimX;
      kernel.blockDimY = params.kernel.blockDimY;
      kernel.blockDimZ = params.kernel.blockDimZ;
      kernel.sharedMemBytes = params.kernel.sharedMemBytes;
      kernel.kernelParams = params.kernel.kernelParams;
      kernel.extra = params.kernel.extra;
      kernel.kern = params.kernel.kern;
      kernel.ctx = params.kernel.ctx;
      return SetKernel(node, kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return SetCopy(node, params.memcpy.copyParams, params.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return SetMemset(node, params.memset, params.memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
      return SetHost(node, {params.host.fn, params.host.userData});
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      Graph* child = FindGraph(params.graph.graph);
      return child == nullptr ? CUDA_ERROR_INVALID_VALUE : SetChild(node, child);
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return SetEvent(node, params.eventRecord.event);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return SetEvent(node, params.eventWait.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return SetSteps(node, params.memOp.count, params.memOp.paramArray, params.memOp.flags,
                      params.memOp.ctx);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

// Makes a node and gives it its parameters by `set`; none is left behind if that fails.
template <class F>
CUresult Add(CUgraphNode* handle, CUgraph graph_handle, CUgraphNodeType type,
             const CUgraphNode* before, const CUgraphEdgeData* data, std::size_t count, F set) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Hold hold(TheGraphs().lock);
  Graph* graph = FindGraph(graph_handle);
  if (graph == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* node = nullptr;
  CUresult result = NewNode(graph, type, before, data, count, &node);
  if (result != CUDA_SUCCESS) return result;
  result = set(node);
  if (result != CUDA_SUCCESS) {
    DestroyNode(node);
    return result;
  }
  *handle = ToHandle(node);
  return CUDA_SUCCESS;
}

// Calls `act` with the node, which must be of that type.
template <class F>
CUresult With(CUgraphNode handle, CUgraphNodeType type, F act) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Hold hold(TheGraphs().lock);
  GraphNode* node = FindNode(handle);
  if (node == nullptr || node->type != type) return CUDA_ERROR_INVALID_VALUE;
  return act(node);
}

}  // namespace

// --- kernels -----------------------------------------------------------------------------------

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(node, graph, CU_GRAPH_NODE_TYPE_KERNEL, before, nullptr, count,
             [&](GraphNode* made) { return SetKernel(made, *params); });
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_KERNEL, [&](const GraphNode* node) {
    *params = node->kernel;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_KERNEL,
              [&](GraphNode* node) { return SetKernel(node, *params); });
}

// Before version 12 the struct ended without a kernel and its context.
#undef cuGraphAddKernelNode
#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuGraphExecKernelNodeSetParams
namespace {
CUDA_KERNEL_NODE_PARAMS Widen(const CUDA_KERNEL_NODE_PARAMS_v1& params) {
  CUDA_KERNEL_NODE_PARAMS wide{};
  memcpy(&wide, &params, sizeof params);
  return wide;
}
}  // namespace
ALLRANKS_SYMBOL(CUresult, cuGraphAddKernelNode,
                (CUgraphNode * node, CUgraph graph, const CUgraphNode* before, size_t count,
                 const CUDA_KERNEL_NODE_PARAMS_v1* params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widen(*params);
  return cuGraphAddKernelNode_v2(node, graph, before, count, &wide);
}
ALLRANKS_SYMBOL(CUresult, cuGraphKernelNodeGetParams,
                (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS wide{};
  const CUresult result = cuGraphKernelNodeGetParams_v2(node, &wide);
  if (result == CUDA_SUCCESS) memcpy(params, &wide, sizeof *params);
  return result;
}
ALLRANKS_SYMBOL(CUresult, cuGraphKernelNodeSetParams,
                (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widen(*params);
  return cuGraphKernelNodeSetParams_v2(node, &wide);
}
ALLRANKS_SYMBOL(CUresult, cuGraphExecKernelNodeSetParams,
                (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params)) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widen(*params);
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  return With(to, CU_GRAPH_NODE_TYPE_KERNEL, [&](GraphNode* node) {
    const GraphNode* source = FindNode(from);
    if (source == nullptr || source->type != CU_GRAPH_NODE_TYPE_KERNEL)
      return CUDA_ERROR_INVALID_VALUE;
    node->attributes = source->attributes;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_KERNEL, [&](const GraphNode* node) {
    memset(value, 0, sizeof *value);
    for (const CUlaunchAttribute& attribute : node->attributes) {
      if (attribute.id == id) *value = attribute.value;
    }
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_KERNEL, [&](GraphNode* node) {
    CUlaunchAttribute made;
    memset(&made, 0, sizeof made);
    made.id = id;
    made.value = *value;
    wire::Launch ignored;
    const CUresult result = ApplyAttributes(&made, 1, &ignored);
    if (result != CUDA_SUCCESS) return result;
    std::erase_if(node->attributes, [&](const CUlaunchAttribute& known) { return known.id == id; });
    node->attributes.push_back(made);
    return CUDA_SUCCESS;
  });
}

// --- copies and sets ---------------------------------------------------------------------------

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_MEMCPY3D* params, CUcontext context) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(node, graph, CU_GRAPH_NODE_TYPE_MEMCPY, before, nullptr, count,
             [&](GraphNode* made) { return SetCopy(made, *params, context); });
}
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_MEMCPY, [&](const GraphNode* node) {
    *params = node->copy;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_MEMCPY, [&](GraphNode* node) {
    return SetCopy(node, *params, reinterpret_cast<CUcontext>(&TheDriver().primary[node->device]));
  });
}

namespace {

CUDA_MEMSET_NODE_PARAMS_v2 Widen(const CUDA_MEMSET_NODE_PARAMS& params) {
  return {params.dst,   params.pitch,  params.value, params.elementSize,
          params.width, params.height, nullptr};
}

}  // namespace

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS* params,
                              CUcontext context) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(node, graph, CU_GRAPH_NODE_TYPE_MEMSET, before, nullptr, count,
             [&](GraphNode* made) { return SetMemset(made, Widen(*params), context); });
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_MEMSET, [&](const GraphNode* node) {
    const CUDA_MEMSET_NODE_PARAMS_v2& set = node->memset;
    *params = {set.dst, set.pitch, set.value, set.elementSize, set.width, set.height};
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphMemsetNodeSetParams(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_MEMSET, [&](GraphNode* node) {
    return SetMemset(node, Widen(*params),
                     reinterpret_cast<CUcontext>(&TheDriver().primary[node->device]));
  });
}

// --- the rest ----------------------------------------------------------------------------------

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                            size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(node, graph, CU_GRAPH_NODE_TYPE_HOST, before, nullptr, count,
             [&](GraphNode* made) { return SetHost(made, *params); });
}
CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_HOST, [&](const GraphNode* node) {
    *params = node->host;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphHostNodeSetParams(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_HOST,
              [&](GraphNode* node) { return SetHost(node, *params); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                  size_t count, CUgraph child) {
  return Add(node, graph, CU_GRAPH_NODE_TYPE_GRAPH, before, nullptr, count, [&](GraphNode* made) {
    Graph* found = FindGraph(child);
    return found == nullptr ? CUDA_ERROR_INVALID_VALUE : SetChild(made, found);
  });
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_GRAPH, [&](const GraphNode* node) {
    *graph = ToHandle(node->child);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                             size_t count) {
  return Add(node, graph, CU_GRAPH_NODE_TYPE_EMPTY, before, nullptr, count,
             [](GraphNode*) { return CUDA_SUCCESS; });
}

#define ALLRANKS_EVENT_NODE(kind, type)                                                          \
  CUresult cuGraphAddEvent##kind##Node(CUgraphNode* node, CUgraph graph,                         \
                                       const CUgraphNode* before, size_t count, CUevent event) { \
    return Add(node, graph, type, before, nullptr, count,                                        \
               [&](GraphNode* made) { return SetEvent(made, event); });                          \
  }                                                                                              \
  CUresult cuGraphEvent##kind##NodeGetEvent(CUgraphNode handle, CUevent* event) {                \
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;                                       \
    return With(handle, type, [&](const GraphNode* node) {                                       \
      *event = node->event;                                                                      \
      return CUDA_SUCCESS;                                                                       \
    });                                                                                          \
  }                                                                                              \
  CUresult cuGraphEvent##kind##NodeSetEvent(CUgraphNode handle, CUevent event) {                 \
    return With(handle, type, [&](GraphNode* node) { return SetEvent(node, event); });           \
  }
ALLRANKS_EVENT_NODE(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
ALLRANKS_EVENT_NODE(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT)

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(node, graph, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, before, nullptr, count,
             [&](GraphNode* made) {
               return SetSteps(made, params->count, params->paramArray, params->flags, params->ctx);
             });
}
CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](GraphNode* node) {
    params->ctx = reinterpret_cast<CUcontext>(&TheDriver().primary[node->device]);
    params->count = static_cast<unsigned>(node->steps.size());
    params->paramArray = node->steps.data();
    params->flags = 0;
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode handle,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](GraphNode* node) {
    return SetSteps(node, params->count, params->paramArray, params->flags, params->ctx);
  });
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before,
                        const CUgraphEdgeData* data, size_t count, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Add(node, graph, params->type, before, data, count,
                              [&](GraphNode* made) { return SetParams(made, *params); });
  if (result == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_GRAPH)
    cuGraphChildGraphNodeGetGraph(*node, &params->graph.graph);
  return result;
}
#undef cuGraphAddNode
ALLRANKS_SYMBOL(CUresult, cuGraphAddNode,
                (CUgraphNode * node, CUgraph graph, const CUgraphNode* before, size_t count,
                 CUgraphNodeParams* params)) {
  return cuGraphAddNode_v2(node, graph, before, nullptr, count, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return With(handle, params->type, [&](GraphNode* node) { return SetParams(node, *params); });
}

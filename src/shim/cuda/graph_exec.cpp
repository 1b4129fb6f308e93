// Executable graphs: instantiation, updates of single places, launches. graph_translate.cpp makes
// the operations that the node (the simulated one) runs.
#include <string.h>

#include <algorithm>

#include "shim/cuda/capture.h"
#include "shim/cuda/graph.h"

namespace allranks::shim {
namespace {

CUresult Instantiate(CUgraphExec* handle, CUgraph graph_handle, unsigned long long flags,
                     CUgraphNode* bad) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Hold hold(TheGraphs().lock);
  const Graph* graph = FindGraph(graph_handle);
  if (graph == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~15ull) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  auto* exec = new GraphExec;
  exec->flags = flags;
  exec->graph = CloneGraph(*graph, &exec->nodes);
  exec->graph->child = true;
  Flat flat;
  flat.places = &exec->places;
  CUresult result = Flatten(*exec->graph, {}, &flat);
  if (result == CUDA_SUCCESS) {
    wire::PutGraph put;
    put.nodes = std::move(flat.nodes);
    wire::PutGraphReply reply;
    result = Result(Call(put, &reply));
    exec->id = reply.graph;
  } else if (bad != nullptr && flat.bad != nullptr) {
    for (GraphNode* node : graph->nodes) {
      if (node->number == flat.bad->origin) *bad = ToHandle(node);
    }
  }
  if (result != CUDA_SUCCESS) {
    DestroyGraph(exec->graph);
    delete exec;
    return result;
  }
  *handle = reinterpret_cast<CUgraphExec>(TheGraphs().execs.Add(exec));
  return CUDA_SUCCESS;
}

// Sends what the executable graph's own nodes now say.
CUresult Send(const GraphExec& exec, const std::vector<const GraphNode*>& nodes) {
  wire::UpdateGraph update;
  update.graph = exec.id;
  for (const GraphNode* node : nodes) {
    wire::GraphNode made;
    if (!exec.disabled.contains(node)) {
      const CUresult result = Translate(*node, &made);
      if (result != CUDA_SUCCESS) return result;
    }
    made.device = node->device;
    update.places.push_back(exec.places.at(node));
    update.nodes.push_back(std::move(made));
  }
  return Result(Call(update));
}

// Changes the executable graph's copy of a node by `set`. If that or its sending fails, the node is
// as before.
template <class F>
CUresult Change(CUgraphExec exec_handle, CUgraphNode handle, F set) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Hold hold(TheGraphs().lock);
  GraphExec* exec = TheGraphs().execs.Find(exec_handle);
  const GraphNode* original = FindNode(handle);
  if (exec == nullptr || original == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = exec->nodes.find(original->number);
  if (found == exec->nodes.end()) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* node = found->second;
  GraphNode before;
  CopyParams(&before, *node);
  CUresult result = set(node);
  if (result == CUDA_SUCCESS && before.device != node->device &&
      node->type != CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
    result = CUDA_ERROR_INVALID_VALUE;  // its context must stay
  }
  if (result == CUDA_SUCCESS) result = Send(*exec, {node});
  if (result != CUDA_SUCCESS) CopyParams(node, before);
  return result;
}

// Nodes correspond by the order in which they were made.
bool SameShape(const Graph& mine, const Graph& other, CUgraphExecUpdateResultInfo* info,
               std::vector<std::pair<GraphNode*, const GraphNode*>>* pairs) {
  info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (mine.nodes.size() != other.nodes.size()) return false;
  std::unordered_map<const GraphNode*, std::size_t> index_mine, index_other;
  for (std::size_t i = 0; i < mine.nodes.size(); ++i) {
    index_mine[mine.nodes[i]] = i;
    index_other[other.nodes[i]] = i;
  }
  for (std::size_t i = 0; i < mine.nodes.size(); ++i) {
    GraphNode* a = mine.nodes[i];
    GraphNode* b = other.nodes[i];
    info->errorNode = ToHandle(b);
    if (a->before.size() != b->before.size()) return false;
    std::vector<std::size_t> from_a, from_b;
    for (const GraphEdge& edge : a->before) from_a.push_back(index_mine.at(edge.node));
    for (const GraphEdge& edge : b->before) from_b.push_back(index_other.at(edge.node));
    std::sort(from_a.begin(), from_a.end());
    std::sort(from_b.begin(), from_b.end());
    if (from_a != from_b) return false;
    if (a->type != b->type) {
      info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
      return false;
    }
    if (a->type == CU_GRAPH_NODE_TYPE_KERNEL && a->device != b->device) {
      info->result = CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
      return false;
    }
    pairs->emplace_back(a, b);
    if (a->child != nullptr && !SameShape(*a->child, *b->child, info, pairs)) return false;
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  info->errorNode = nullptr;
  return true;
}

CUresult UpdateFrom(GraphExec* exec, const Graph& mine, const Graph& other,
                    CUgraphExecUpdateResultInfo* info) {
  std::vector<std::pair<GraphNode*, const GraphNode*>> pairs;
  if (!SameShape(mine, other, info, &pairs)) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  std::vector<const GraphNode*> changed;
  for (const auto& [to, from] : pairs) {
    CopyParams(to, *from);
    changed.push_back(to);
  }
  const CUresult result = Send(*exec, changed);
  if (result != CUDA_SUCCESS) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return Instantiate(exec, graph, flags, nullptr);
}

// Before version 12 the function told what was wrong in a buffer.
#undef cuGraphInstantiate
ALLRANKS_SYMBOL(CUresult, cuGraphInstantiate,
                (CUgraphExec * exec, CUgraph graph, CUgraphNode* bad, char* log, size_t size)) {
  if (log != nullptr && size > 0) log[0] = '\0';
  return Instantiate(exec, graph, 0, bad);
}
ALLRANKS_SYMBOL(CUresult, cuGraphInstantiate_v2,
                (CUgraphExec * exec, CUgraph graph, CUgraphNode* bad, char* log, size_t size)) {
  if (log != nullptr && size > 0) log[0] = '\0';
  return Instantiate(exec, graph, 0, bad);
}

namespace {

CUresult Do_cuGraphInstantiateWithParams(bool per_thread, CUgraphExec* exec, CUgraph graph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  const CUresult result = Instantiate(exec, graph, params->flags, &params->hErrNode_out);
  params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                       : result == CUDA_ERROR_NOT_SUPPORTED
                           ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
                           : CUDA_GRAPH_INSTANTIATE_ERROR;
  if (result != CUDA_SUCCESS || (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) == 0)
    return result;
  wire::StreamRef ref;
  return ResolveStream(params->hUploadStream, per_thread, &ref);
}

// What a launch needs is at the node since instantiation.
CUresult Do_cuGraphUpload(bool per_thread, CUgraphExec handle, CUstream stream) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (TheGraphs().execs.Find(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::StreamRef ref;
  return ResolveStream(stream, per_thread, &ref);
}

CUresult Do_cuGraphLaunch(bool per_thread, CUgraphExec handle, CUstream stream) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  GraphExec* exec = TheGraphs().execs.Find(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (Stream* capturing = Capturing(stream, per_thread)) return CaptureGraph(capturing, exec);
  wire::StreamRef ref;
  const CUresult result = ResolveStream(stream, per_thread, &ref);
  if (result != CUDA_SUCCESS) return result;
  wire::LaunchGraph launch;
  launch.stream = ref;
  launch.graph = exec->id;
  return Result(Call(launch));
}

}  // namespace

ALLRANKS_BOTH_STREAMS(cuGraphInstantiateWithParams, _ptsz,
                      (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params),
                      exec, graph, params)
ALLRANKS_BOTH_STREAMS(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), exec, stream)
ALLRANKS_BOTH_STREAMS(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), exec, stream)

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Hold hold(TheGraphs().lock);
  GraphExec* exec = TheGraphs().execs.Find(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  TheGraphs().execs.Remove(exec);
  wire::DropGraph drop;
  drop.graph = exec->id;
  const CUresult result = Result(Call(drop));
  DestroyGraph(exec->graph);
  delete exec;
  return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  const GraphExec* exec = TheGraphs().execs.Find(handle);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate(CUgraphExec exec_handle, CUgraph graph_handle,
                           CUgraphExecUpdateResultInfo* info) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Hold hold(TheGraphs().lock);
  *info = {};
  GraphExec* exec = TheGraphs().execs.Find(exec_handle);
  const Graph* graph = FindGraph(graph_handle);
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return UpdateFrom(exec, *exec->graph, *graph, info);
}
#undef cuGraphExecUpdate
ALLRANKS_SYMBOL(CUresult, cuGraphExecUpdate,
                (CUgraphExec exec, CUgraph graph, CUgraphNode* node,
                 CUgraphExecUpdateResult* result)) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult updated = cuGraphExecUpdate_v2(exec, graph, &info);
  if (node != nullptr) *node = info.errorNode;
  if (result != nullptr) *result = info.result;
  return updated;
}

// --- single nodes ------------------------------------------------------------------------------

#define ALLRANKS_OF_TYPE(type_) \
  if (node->type != (type_)) return CUDA_ERROR_INVALID_VALUE

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                        const CUDA_KERNEL_NODE_PARAMS* params) {
  return Change(exec, handle, [&](GraphNode* node) {
    ALLRANKS_OF_TYPE(CU_GRAPH_NODE_TYPE_KERNEL);
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : SetKernel(node, *params);
  });
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                        const CUDA_MEMCPY3D* params, CUcontext context) {
  return Change(exec, handle, [&](GraphNode* node) {
    ALLRANKS_OF_TYPE(CU_GRAPH_NODE_TYPE_MEMCPY);
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : SetCopy(node, *params, context);
  });
}
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  return Change(exec, handle, [&](GraphNode* node) {
    ALLRANKS_OF_TYPE(CU_GRAPH_NODE_TYPE_MEMSET);
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return SetMemset(node,
                     {params->dst, params->pitch, params->value, params->elementSize, params->width,
                      params->height, nullptr},
                     context);
  });
}
CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  return Change(exec, handle, [&](GraphNode* node) {
    ALLRANKS_OF_TYPE(CU_GRAPH_NODE_TYPE_HOST);
    return params == nullptr ? CUDA_ERROR_INVALID_VALUE : SetHost(node, *params);
  });
}
CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode handle, CUevent event) {
  return Change(exec, handle, [&](GraphNode* node) {
    ALLRANKS_OF_TYPE(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    return SetEvent(node, event);
  });
}
CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode handle, CUevent event) {
  return Change(exec, handle, [&](GraphNode* node) {
    ALLRANKS_OF_TYPE(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    return SetEvent(node, event);
  });
}
CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode handle,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return Change(exec, handle, [&](GraphNode* node) {
    ALLRANKS_OF_TYPE(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return SetSteps(node, params->count, params->paramArray, params->flags, params->ctx);
  });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec_handle, CUgraphNode handle,
                                            CUgraph child_handle) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Hold hold(TheGraphs().lock);
  GraphExec* exec = TheGraphs().execs.Find(exec_handle);
  const GraphNode* original = FindNode(handle);
  const Graph* child = FindGraph(child_handle);
  if (exec == nullptr || original == nullptr || child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = exec->nodes.find(original->number);
  if (found == exec->nodes.end() || found->second->child == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  return UpdateFrom(exec, *found->second->child, *child, &info);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode handle, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
    return cuGraphExecChildGraphNodeSetParams(exec, handle, params->graph.graph);
  return Change(exec, handle, [&](GraphNode* node) { return SetParams(node, *params); });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned enabled) {
  return Change(exec_handle, handle, [&](GraphNode* node) {
    if (node->type != CU_GRAPH_NODE_TYPE_KERNEL && node->type != CU_GRAPH_NODE_TYPE_MEMSET &&
        node->type != CU_GRAPH_NODE_TYPE_MEMCPY) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    GraphExec* exec = TheGraphs().execs.Find(exec_handle);
    if (enabled != 0) {
      exec->disabled.erase(node);
    } else {
      exec->disabled[node] = true;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec_handle, CUgraphNode handle, unsigned* enabled) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Hold hold(TheGraphs().lock);
  const GraphExec* exec = TheGraphs().execs.Find(exec_handle);
  const GraphNode* original = FindNode(handle);
  if (exec == nullptr || original == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = exec->nodes.find(original->number);
  if (found == exec->nodes.end()) return CUDA_ERROR_INVALID_VALUE;
  *enabled = exec->disabled.contains(found->second) ? 0 : 1;
  return CUDA_SUCCESS;
}

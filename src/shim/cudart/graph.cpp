// Graphs of the runtime API, their edges, executable graphs and stream capture; nodes by kind:
// graph_nodes.cpp.
#include "shim/cudart/graph.h"

#include "shim/cudart/runtime.h"

using namespace allranks::shim;

namespace {

cudaStream_t OrPerThread(cudaStream_t stream) {
  return stream == nullptr ? cudaStreamPerThread : stream;
}

}  // namespace

// --- graphs, nodes and edges -------------------------------------------------------------------

ALLRANKS_GRAPH_CALL(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags),
                    cuGraphCreate(graph, flags))
ALLRANKS_GRAPH_CALL(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
ALLRANKS_GRAPH_CALL(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph),
                    cuGraphClone(clone, graph))
ALLRANKS_GRAPH_CALL(cudaGraphNodeFindInClone,
                    (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone),
                    cuGraphNodeFindInClone(node, original, clone))
ALLRANKS_GRAPH_CALL(cudaGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType* type),
                    cuGraphNodeGetType(node, reinterpret_cast<CUgraphNodeType*>(type)))
ALLRANKS_GRAPH_CALL(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
                    cuGraphGetNodes(graph, nodes, count))
ALLRANKS_GRAPH_CALL(cudaGraphGetRootNodes,
                    (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
                    cuGraphGetRootNodes(graph, nodes, count))
ALLRANKS_GRAPH_CALL(cudaGraphGetEdges,
                    (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                     cudaGraphEdgeData* data, size_t* count),
                    cuGraphGetEdges(graph, from, to, Driver(data), count))
ALLRANKS_GRAPH_CALL(cudaGraphNodeGetDependencies,
                    (cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                     size_t* count),
                    cuGraphNodeGetDependencies(node, nodes, Driver(data), count))
ALLRANKS_GRAPH_CALL(cudaGraphNodeGetDependentNodes,
                    (cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                     size_t* count),
                    cuGraphNodeGetDependentNodes(node, nodes, Driver(data), count))
ALLRANKS_GRAPH_CALL(cudaGraphAddDependencies,
                    (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                     const cudaGraphEdgeData* data, size_t count),
                    cuGraphAddDependencies(graph, from, to, Driver(data), count))
ALLRANKS_GRAPH_CALL(cudaGraphRemoveDependencies,
                    (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                     const cudaGraphEdgeData* data, size_t count),
                    cuGraphRemoveDependencies(graph, from, to, Driver(data), count))
ALLRANKS_GRAPH_CALL(cudaGraphDestroyNode, (cudaGraphNode_t node), cuGraphDestroyNode(node))
ALLRANKS_GRAPH_CALL(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char* path, unsigned flags),
                    cuGraphDebugDotPrint(graph, path, flags))
ALLRANKS_GRAPH_CALL(cudaUserObjectCreate,
                    (cudaUserObject_t * object, void* pointer, cudaHostFn_t destroy, unsigned count,
                     unsigned flags),
                    cuUserObjectCreate(object, pointer, destroy, count, flags))
ALLRANKS_GRAPH_CALL(cudaUserObjectRetain, (cudaUserObject_t object, unsigned count),
                    cuUserObjectRetain(object, count))
ALLRANKS_GRAPH_CALL(cudaUserObjectRelease, (cudaUserObject_t object, unsigned count),
                    cuUserObjectRelease(object, count))
ALLRANKS_GRAPH_CALL(cudaGraphRetainUserObject,
                    (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags),
                    cuGraphRetainUserObject(graph, object, count, flags))
ALLRANKS_GRAPH_CALL(cudaGraphReleaseUserObject,
                    (cudaGraph_t graph, cudaUserObject_t object, unsigned count),
                    cuGraphReleaseUserObject(graph, object, count))

// --- executable graphs -------------------------------------------------------------------------

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  ALLRANKS_ENTER();
  return Note(cuGraphInstantiateWithFlags(exec, graph, flags));
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
ALLRANKS_GRAPH_CALL(cudaGraphInstantiateWithParams,
                    (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams* params),
                    cuGraphInstantiateWithParams(
                        exec, graph, reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params)))
ALLRANKS_SYMBOL(cudaError_t, cudaGraphInstantiateWithParams_ptsz,
                (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams* params)) {
  if (params != nullptr) params->uploadStream = OrPerThread(params->uploadStream);
  return cudaGraphInstantiateWithParams(exec, graph, params);
}
ALLRANKS_GRAPH_CALL(cudaGraphExecDestroy, (cudaGraphExec_t exec), cuGraphExecDestroy(exec))
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  ALLRANKS_ENTER();
  cuuint64_t value = 0;
  const CUresult result = cuGraphExecGetFlags(exec, &value);
  if (flags == nullptr) return Note(cudaErrorInvalidValue);
  *flags = value;
  return Note(result);
}
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
ALLRANKS_GRAPH_CALL(cudaGraphExecUpdate,
                    (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info),
                    cuGraphExecUpdate(exec, graph,
                                      reinterpret_cast<CUgraphExecUpdateResultInfo*>(info)))
ALLRANKS_GRAPH_CALL(cudaGraphNodeSetEnabled,
                    (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled),
                    cuGraphNodeSetEnabled(exec, node, enabled))
ALLRANKS_GRAPH_CALL(cudaGraphNodeGetEnabled,
                    (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled),
                    cuGraphNodeGetEnabled(exec, node, enabled))
ALLRANKS_STREAM_CALL(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream),
                     cuGraphUpload(exec, stream), cuGraphUpload(exec, OrPerThread(stream)))
ALLRANKS_STREAM_CALL(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream),
                     cuGraphLaunch(exec, stream), cuGraphLaunch(exec, OrPerThread(stream)))

// --- capture -----------------------------------------------------------------------------------

ALLRANKS_STREAM_CALL(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode),
                     cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)),
                     cuStreamBeginCapture(OrPerThread(stream),
                                          static_cast<CUstreamCaptureMode>(mode)))
ALLRANKS_STREAM_CALL(cudaStreamBeginCaptureToGraph,
                     (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* before,
                      const cudaGraphEdgeData* data, size_t count, cudaStreamCaptureMode mode),
                     cuStreamBeginCaptureToGraph(stream, graph, before, Driver(data), count,
                                                 static_cast<CUstreamCaptureMode>(mode)),
                     cuStreamBeginCaptureToGraph(OrPerThread(stream), graph, before, Driver(data),
                                                 count, static_cast<CUstreamCaptureMode>(mode)))
ALLRANKS_STREAM_CALL(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph),
                     cuStreamEndCapture(stream, graph),
                     cuStreamEndCapture(OrPerThread(stream), graph))
ALLRANKS_STREAM_CALL(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status),
                     cuStreamIsCapturing(stream, reinterpret_cast<CUstreamCaptureStatus*>(status)),
                     cuStreamIsCapturing(OrPerThread(stream),
                                         reinterpret_cast<CUstreamCaptureStatus*>(status)))
#define ALLRANKS_CAPTURE_INFO(stream)                                              \
  cuStreamGetCaptureInfo(stream, reinterpret_cast<CUstreamCaptureStatus*>(status), \
                         reinterpret_cast<cuuint64_t*>(id), graph, nodes,          \
                         reinterpret_cast<const CUgraphEdgeData**>(data), count)
ALLRANKS_STREAM_CALL(cudaStreamGetCaptureInfo,
                     (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                      cudaGraph_t* graph, const cudaGraphNode_t** nodes,
                      const cudaGraphEdgeData** data, size_t* count),
                     ALLRANKS_CAPTURE_INFO(stream), ALLRANKS_CAPTURE_INFO(OrPerThread(stream)))
ALLRANKS_STREAM_CALL(cudaStreamUpdateCaptureDependencies,
                     (cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData* data,
                      size_t count, unsigned flags),
                     cuStreamUpdateCaptureDependencies(stream, nodes, Driver(data), count, flags),
                     cuStreamUpdateCaptureDependencies(OrPerThread(stream), nodes, Driver(data),
                                                       count, flags))
ALLRANKS_GRAPH_CALL(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode),
                    cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode)))

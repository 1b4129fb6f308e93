// Stream capture. capture.h has the overview.
#include "shim/cuda/capture.h"

#include <algorithm>

#include "shim/cuda/graph.h"

namespace allranks::shim {
namespace {

// All of it is guarded by the graphs' lock.
std::vector<Capture*>& Captures() {
  static auto* captures = new std::vector<Capture*>;
  return *captures;
}
unsigned long long g_next_id = 1;
thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

std::vector<CUgraphNode> HandlesOf(const std::vector<GraphNode*>& nodes) {
  std::vector<CUgraphNode> handles;
  for (GraphNode* node : nodes) handles.push_back(ToHandle(node));
  return handles;
}

bool IsProgrammatic(const CUlaunchAttribute* attributes, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      return attributes[i].value.programmaticStreamSerializationAllowed != 0;
  }
  return false;
}

// Work of the stream becomes a node behind what it captured last. Work that cannot be captured ends
// the capture.
template <class F>
CUresult AddNode(Stream* stream, CUgraphNodeType type, bool programmatic, F set) {
  Hold hold(TheGraphs().lock);
  Capture* capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const std::vector<CUgraphNode> before = HandlesOf(stream->tail);
  std::vector<CUgraphEdgeData> data(before.size());
  for (std::size_t i = 0; programmatic && i < before.size(); ++i) {
    if (stream->tail[i]->type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    data[i].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    data[i].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  }
  GraphNode* node = nullptr;
  CUresult result = NewNode(capture->graph, type, before.data(), data.data(), before.size(), &node);
  if (result == CUDA_SUCCESS) {
    node->device = stream->device;
    result = set(node);
    if (result != CUDA_SUCCESS) DestroyNode(node);
  }
  if (result != CUDA_SUCCESS) {
    capture->invalid = true;
    return result;
  }
  stream->tail = {node};
  capture->made.insert(node);
  return CUDA_SUCCESS;
}

// The stream of a handle; nullptr for the legacy default stream.
CUresult StreamOf(CUstream handle, bool per_thread, Stream** stream) {
  wire::StreamRef ref;
  return LocateStream(handle, per_thread, &ref, stream);
}

void Join(Stream* stream, Capture* capture) {
  stream->capture = capture;
  capture->streams.push_back(stream);
}

void EndCapture(Capture* capture) {
  for (Stream* stream : capture->streams) {
    stream->capture = nullptr;
    stream->tail.clear();
  }
  std::erase(Captures(), capture);
}

CUresult Begin(CUstream handle, bool per_thread, Graph* graph, const CUgraphNode* before,
               std::size_t count, CUstreamCaptureMode mode) {
  Stream* stream = nullptr;
  const CUresult result = StreamOf(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (stream == nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  Hold hold(TheGraphs().lock);
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  std::vector<GraphNode*> tail;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* node = before == nullptr ? nullptr : FindNode(before[i]);
    if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    tail.push_back(node);
  }
  auto* capture = new Capture;
  capture->own_graph = graph == nullptr;
  capture->graph = graph == nullptr ? NewGraph() : graph;
  capture->mode = mode;
  capture->id = g_next_id++;
  capture->thread = pthread_self();
  capture->origin = stream;
  stream->tail = std::move(tail);
  Join(stream, capture);
  Captures().push_back(capture);
  return CUDA_SUCCESS;
}

}  // namespace

Stream* Capturing(CUstream handle, bool per_thread) {
  Stream* stream = nullptr;
  if (Captures().empty() || StreamOf(handle, per_thread, &stream) != CUDA_SUCCESS) return nullptr;
  return stream != nullptr && stream->capture != nullptr ? stream : nullptr;
}

CUresult CaptureLaunch(Stream* stream, const CUDA_KERNEL_NODE_PARAMS& params,
                       const CUlaunchAttribute* attributes, unsigned count) {
  return AddNode(stream, CU_GRAPH_NODE_TYPE_KERNEL, IsProgrammatic(attributes, count),
                 [&](GraphNode* node) {
                   node->attributes.assign(attributes, attributes + count);
                   return SetKernel(node, params);
                 });
}

CUresult CaptureCopy(Stream* stream, const Region& region) {
  return AddNode(stream, CU_GRAPH_NODE_TYPE_MEMCPY, false, [&](GraphNode* node) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = region.src;
    copy.dstDevice = region.dst;
    copy.WidthInBytes = region.width;
    copy.Height = region.rows.height;
    copy.Depth = region.rows.depth;
    copy.srcPitch = region.rows.src_pitch;
    copy.dstPitch = region.rows.dst_pitch;
    if (copy.srcPitch != 0) copy.srcHeight = region.rows.src_slice / copy.srcPitch;
    if (copy.dstPitch != 0) copy.dstHeight = region.rows.dst_slice / copy.dstPitch;
    return SetCopy(node, copy, reinterpret_cast<CUcontext>(&TheDriver().primary[stream->device]));
  });
}

CUresult CaptureMemset(Stream* stream, const wire::Memset& set) {
  return AddNode(stream, CU_GRAPH_NODE_TYPE_MEMSET, false, [&](GraphNode* node) {
    return SetMemset(
        node,
        {set.dst, set.rows.dst_pitch, set.value, set.width, set.count, set.rows.height, nullptr},
        reinterpret_cast<CUcontext>(&TheDriver().primary[stream->device]));
  });
}

CUresult CaptureHost(Stream* stream, CUhostFn function, void* data) {
  return AddNode(stream, CU_GRAPH_NODE_TYPE_HOST, false,
                 [&](GraphNode* node) { return SetHost(node, {function, data}); });
}

CUresult CaptureValues(Stream* stream, unsigned count, const CUstreamBatchMemOpParams* params) {
  return AddNode(stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, false, [&](GraphNode* node) {
    return SetSteps(node, count, params, 0,
                    reinterpret_cast<CUcontext>(&TheDriver().primary[stream->device]));
  });
}

CUresult CaptureGraph(Stream* stream, GraphExec* exec) {
  return AddNode(stream, CU_GRAPH_NODE_TYPE_GRAPH, false,
                 [&](GraphNode* node) { return SetChild(node, exec->graph); });
}

CUresult CaptureRecord(Stream* stream, Event* event, bool external) {
  if (external) {
    return AddNode(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, false, [&](GraphNode* node) {
      return SetEvent(node, reinterpret_cast<CUevent>(event));
    });
  }
  Hold hold(TheGraphs().lock);
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->capture = stream->capture->id;
  event->tail = stream->tail;
  return CUDA_SUCCESS;
}

bool CaptureWait(CUstream handle, bool per_thread, Event* event, bool external, CUresult* result) {
  if (Captures().empty() && event->capture == 0) return false;
  Stream* stream = nullptr;
  *result = StreamOf(handle, per_thread, &stream);
  if (*result != CUDA_SUCCESS) return true;
  if (external) {
    if (stream == nullptr || stream->capture == nullptr) return false;
    *result = AddNode(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, false, [&](GraphNode* node) {
      return SetEvent(node, reinterpret_cast<CUevent>(event));
    });
    return true;
  }
  Hold hold(TheGraphs().lock);
  Capture* other = nullptr;
  for (Capture* capture : Captures()) {
    if (capture->id == event->capture) other = capture;
  }
  Capture* own = stream != nullptr ? stream->capture : nullptr;
  if (event->capture == 0) {
    if (own == nullptr) return false;
    own->invalid = true;  // the graph would depend on work outside of it
    *result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    return true;
  }
  *result = CUDA_SUCCESS;
  if (other == nullptr) {  // the capture that it was recorded in is over
    *result = CUDA_ERROR_CAPTURED_EVENT;
  } else if (other->invalid) {
    *result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (own != nullptr && own != other) {
    own->invalid = other->invalid = true;
    *result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
  } else if (stream == nullptr) {
    other->invalid = true;
    *result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  } else {
    if (own == nullptr) Join(stream, other);
    for (GraphNode* node : event->tail) {
      if (std::find(stream->tail.begin(), stream->tail.end(), node) == stream->tail.end())
        stream->tail.push_back(node);
    }
  }
  return true;
}

CUresult CheckOrdinaryUse(Stream* stream, int device) {
  if (Captures().empty()) return CUDA_SUCCESS;
  Hold hold(TheGraphs().lock);
  if (stream != nullptr) {
    if (stream->capture == nullptr) return CUDA_SUCCESS;
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  // The legacy stream would wait for the blocking streams of its context.
  for (Capture* capture : Captures()) {
    for (const Stream* member : capture->streams) {
      if (member->device != device || (member->flags & CU_STREAM_NON_BLOCKING) != 0) continue;
      capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return CUDA_SUCCESS;
}

CUresult CheckUnsafeCall() {
  if (Captures().empty() || t_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  Hold hold(TheGraphs().lock);
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture : Captures()) {
    const bool mine = pthread_equal(capture->thread, pthread_self()) != 0;
    const bool respected = (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                            (mine || t_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) ||
                           (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && mine);
    if (!respected) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult CheckEventUse(const Event* event) {
  return event->capture != 0 ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

CUresult CheckContextUse(int device, std::uint64_t captured) {
  if (Captures().empty()) return CUDA_SUCCESS;
  Hold hold(TheGraphs().lock);
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture : Captures()) {
    const auto& members = capture->streams;
    const bool conflicts = capture->id == captured || std::any_of(members.begin(), members.end(),
                                                                  [device](const Stream* member) {
                                                                    return member->device == device;
                                                                  });
    if (!conflicts) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

void LeaveCapture(Stream* stream) {
  Hold hold(TheGraphs().lock);
  Capture* capture = stream->capture;
  if (capture == nullptr) return;
  std::erase(capture->streams, stream);
  if (capture->origin != stream)
    return;  // what it captured stays; EndCapture asks whether it joined
  capture->invalid = true;
  EndCapture(capture);
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

CUresult Do_cuStreamBeginCapture(bool per_thread, CUstream stream, CUstreamCaptureMode mode) {
  const CUresult ready = Ready();
  return ready != CUDA_SUCCESS ? ready : Begin(stream, per_thread, nullptr, nullptr, 0, mode);
}

CUresult Do_cuStreamBeginCaptureToGraph(bool per_thread, CUstream stream, CUgraph graph_handle,
                                        const CUgraphNode* before, const CUgraphEdgeData*,
                                        size_t count, CUstreamCaptureMode mode) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Graph* graph = FindGraph(graph_handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Begin(stream, per_thread, graph, before, count, mode);
}

CUresult Do_cuStreamEndCapture(bool per_thread, CUstream handle, CUgraph* graph) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  Stream* stream = nullptr;
  const CUresult found = StreamOf(handle, per_thread, &stream);
  if (found != CUDA_SUCCESS) return found;
  Hold hold(TheGraphs().lock);
  if (stream == nullptr || stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  Capture* capture = stream->capture;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      !pthread_equal(capture->thread, pthread_self())) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  // Whatever is last in the graph must be what the origin has waited for.
  for (GraphNode* node : capture->graph->nodes) {
    if (result != CUDA_SUCCESS) break;
    if (!capture->made.contains(node) || !node->after.empty()) continue;
    if (std::find(stream->tail.begin(), stream->tail.end(), node) == stream->tail.end())
      result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  EndCapture(capture);
  if (result == CUDA_SUCCESS) {
    *graph = ToHandle(capture->graph);
  } else if (capture->own_graph) {
    DestroyGraph(capture->graph);
  }
  delete capture;
  return result;
}

CUresult Do_cuStreamIsCapturing(bool per_thread, CUstream handle, CUstreamCaptureStatus* status) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  wire::StreamRef ref;
  Stream* stream = nullptr;
  CUresult result = LocateStream(handle, per_thread, &ref, &stream);
  if (result != CUDA_SUCCESS) return result;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (stream == nullptr) return CheckOrdinaryUse(nullptr, ref.device);
  Hold hold(TheGraphs().lock);
  if (stream->capture != nullptr) {
    *status = stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }
  return CUDA_SUCCESS;
}

CUresult Do_cuStreamGetCaptureInfo(bool per_thread, CUstream handle, CUstreamCaptureStatus* status,
                                   cuuint64_t* id, CUgraph* graph, const CUgraphNode** nodes,
                                   const CUgraphEdgeData** data, size_t* count) {
  const CUresult result = Do_cuStreamIsCapturing(per_thread, handle, status);
  if (result != CUDA_SUCCESS) return result;
  if (id != nullptr) *id = 0;
  if (graph != nullptr) *graph = nullptr;
  if (nodes != nullptr) *nodes = nullptr;
  if (data != nullptr) *data = nullptr;
  if (count != nullptr) *count = 0;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  Stream* stream = nullptr;
  StreamOf(handle, per_thread, &stream);
  Hold hold(TheGraphs().lock);
  // The lists live until the thread asks again.
  thread_local std::vector<CUgraphNode>* t_nodes = new std::vector<CUgraphNode>;
  thread_local std::vector<CUgraphEdgeData>* t_data = new std::vector<CUgraphEdgeData>;
  *t_nodes = HandlesOf(stream->tail);
  t_data->assign(t_nodes->size(), CUgraphEdgeData{});
  if (id != nullptr) *id = stream->capture->id;
  if (graph != nullptr) *graph = ToHandle(stream->capture->graph);
  if (nodes != nullptr) *nodes = t_nodes->data();
  if (data != nullptr) *data = t_data->data();
  if (count != nullptr) *count = t_nodes->size();
  return CUDA_SUCCESS;
}

CUresult Do_cuStreamUpdateCaptureDependencies(bool per_thread, CUstream handle, CUgraphNode* nodes,
                                              const CUgraphEdgeData*, size_t count,
                                              unsigned flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  Stream* stream = Capturing(handle, per_thread);
  if (stream == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count != 0 && nodes == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  Hold hold(TheGraphs().lock);
  std::vector<GraphNode*> tail;
  if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES) tail = stream->tail;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* node = FindNode(nodes[i]);
    if (node == nullptr || node->graph != stream->capture->graph) return CUDA_ERROR_INVALID_VALUE;
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  stream->tail = std::move(tail);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(t_mode, *mode);
  return CUDA_SUCCESS;
}

ALLRANKS_BOTH_STREAMS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph* graph), stream, graph)
ALLRANKS_BOTH_STREAMS(cuStreamIsCapturing, _ptsz, (CUstream stream, CUstreamCaptureStatus* status),
                      stream, status)
ALLRANKS_BOTH_STREAMS(cuStreamBeginCaptureToGraph, _ptsz,
                      (CUstream stream, CUgraph graph, const CUgraphNode* before,
                       const CUgraphEdgeData* data, size_t count, CUstreamCaptureMode mode),
                      stream, graph, before, data, count, mode)

// Several versions each; the header knows only the latest.
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
#undef cuStreamUpdateCaptureDependencies
#define ALLRANKS_VERSIONS(name, parameters, call)      \
  ALLRANKS_SYMBOL(CUresult, name, parameters) {        \
    constexpr bool per_thread = false;                 \
    return call;                                       \
  }                                                    \
  ALLRANKS_SYMBOL(CUresult, name##_ptsz, parameters) { \
    constexpr bool per_thread = true;                  \
    return call;                                       \
  }
ALLRANKS_VERSIONS(cuStreamBeginCapture, (CUstream stream),
                  Do_cuStreamBeginCapture(per_thread, stream, CU_STREAM_CAPTURE_MODE_GLOBAL))
ALLRANKS_VERSIONS(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
                  Do_cuStreamBeginCapture(per_thread, stream, mode))
ALLRANKS_VERSIONS(cuStreamGetCaptureInfo,
                  (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id),
                  Do_cuStreamGetCaptureInfo(per_thread, stream, status, id, nullptr, nullptr,
                                            nullptr, nullptr))
ALLRANKS_VERSIONS(cuStreamGetCaptureInfo_v2,
                  (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                   const CUgraphNode** nodes, size_t* count),
                  Do_cuStreamGetCaptureInfo(per_thread, stream, status, id, graph, nodes, nullptr,
                                            count))
ALLRANKS_VERSIONS(cuStreamGetCaptureInfo_v3,
                  (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                   const CUgraphNode** nodes, const CUgraphEdgeData** data, size_t* count),
                  Do_cuStreamGetCaptureInfo(per_thread, stream, status, id, graph, nodes, data,
                                            count))
ALLRANKS_VERSIONS(cuStreamUpdateCaptureDependencies,
                  (CUstream stream, CUgraphNode* nodes, size_t count, unsigned flags),
                  Do_cuStreamUpdateCaptureDependencies(per_thread, stream, nodes, nullptr, count,
                                                       flags))
ALLRANKS_VERSIONS(cuStreamUpdateCaptureDependencies_v2,
                  (CUstream stream, CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count,
                   unsigned flags),
                  Do_cuStreamUpdateCaptureDependencies(per_thread, stream, nodes, data, count,
                                                       flags))

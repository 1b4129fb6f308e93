// From the nodes of a graph to the flat list of operations that the node (the simulated one) runs.
#include "shim/cuda/graph.h"

namespace allranks::shim {
namespace {

struct HostJob {
  CUhostFn function = nullptr;
  void* data = nullptr;
  Region region;  // of a copy, if there is no function
  int device = 0;
};

// Copies from or to memory that only this process has are made by it, on the thread of host
// functions, when their turn has come. A stream of their own orders them behind nothing else.
void RunCopy(const HostJob& job) {
  static CUstream streams[kMaxDevices];  // only that one thread comes here
  if (cuCtxSetCurrent(reinterpret_cast<CUcontext>(&TheDriver().primary[job.device])) !=
      CUDA_SUCCESS) {
    return;
  }
  CUstream& stream = streams[job.device];
  if (stream == nullptr && cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return;
  CopyRegion(job.region, stream, false, false);
  cuStreamSynchronize(stream);
}

void RunJob(void* argument, CUresult) {
  const auto* job = static_cast<const HostJob*>(argument);
  if (job->function != nullptr) {
    RunHostFunction(job->function, job->data);
  } else {
    RunCopy(*job);
  }
}

// Jobs are never freed: a launch that still needs one may be under way, and they are small.
CUresult ToHost(const HostJob& job, wire::GraphNode* out) {
  const CUresult result = StartHostThread();
  if (result != CUDA_SUCCESS) return result;
  out->kind = wire::GraphNode::Kind::kHost;
  out->host.function = reinterpret_cast<std::uint64_t>(&RunJob);
  out->host.argument = reinterpret_cast<std::uint64_t>(new HostJob(job));
  return CUDA_SUCCESS;
}

CUresult TranslateCopy(const GraphNode& node, wire::GraphNode* out) {
  Region region;
  const CUresult result = RegionOf(node.copy, &region);
  if (result != CUDA_SUCCESS) return result;
  if (region.width == 0 || region.rows.height == 0 || region.rows.depth == 0) return CUDA_SUCCESS;
  if (!IsNodeAddress(region.dst) || !IsNodeAddress(region.src)) {
    HostJob job;
    job.region = region;
    job.device = node.device;
    return ToHost(job, out);
  }
  out->kind = wire::GraphNode::Kind::kCopy;
  out->copy.dst = region.dst;
  out->copy.src = region.src;
  out->copy.size = region.width;
  out->copy.rows = region.rows;
  return CUDA_SUCCESS;
}

CUresult TranslateKernel(const GraphNode& node, wire::GraphNode* out) {
  const CUDA_KERNEL_NODE_PARAMS& kernel = node.kernel;
  Function* function = nullptr;
  CUresult result = ResolveLaunched(
      kernel.func != nullptr ? kernel.func : reinterpret_cast<CUfunction>(kernel.kern), node.device,
      &function);
  if (result != CUDA_SUCCESS) return result;
  out->kind = wire::GraphNode::Kind::kKernel;
  out->launch.grid = {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ};
  out->launch.block = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ};
  out->launch.dynamic_shared = kernel.sharedMemBytes;
  result = ApplyAttributes(node.attributes.data(), static_cast<unsigned>(node.attributes.size()),
                           &out->launch);
  // Programmatic edges: the kernel may begin when those before it have said so.
  for (const GraphEdge& edge : node.before) {
    if (edge.data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) out->launch.programmatic = true;
  }
  out->launch.kernel = function->info.kernel;
  out->launch.params = node.packed;
  return result;
}

}  // namespace

CUresult Translate(const GraphNode& node, wire::GraphNode* out) {
  out->device = node.device;
  out->stack = node.stack;
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return TranslateKernel(node, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return TranslateCopy(node, out);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      out->kind = wire::GraphNode::Kind::kMemset;
      out->memset.dst = node.memset.dst;
      out->memset.value = node.memset.value;
      out->memset.width = static_cast<std::uint8_t>(node.memset.elementSize);
      out->memset.count = node.memset.width;
      out->memset.rows.height = node.memset.height;
      out->memset.rows.dst_pitch = node.memset.pitch;
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_HOST: {
      HostJob job;
      job.function = node.host.fn;
      job.data = node.host.userData;
      return ToHost(job, out);
    }
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
      const Event* event = TheDriver().events.Find(node.event);
      if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      out->kind = node.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? wire::GraphNode::Kind::kWait
                                                             : wire::GraphNode::Kind::kRecord;
      out->event = event->id;
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      out->kind = wire::GraphNode::Kind::kValues;
      return TranslateValues(static_cast<unsigned>(node.steps.size()), node.steps.data(),
                             &out->values);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult Flatten(const Graph& graph, const std::vector<std::uint32_t>& outer, Flat* flat) {
  std::unordered_map<const GraphNode*, std::size_t> missing;
  std::vector<const GraphNode*> ready;
  for (const GraphNode* node : graph.nodes) {
    missing[node] = node->before.size();
    if (node->before.empty()) ready.push_back(node);
  }
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const GraphNode* node = ready[next];
    std::vector<std::uint32_t> after;
    for (const GraphEdge& edge : node->before) after.push_back(flat->places->at(edge.node));
    if (after.empty()) after = outer;
    if (node->child != nullptr) {
      const auto first = static_cast<std::uint32_t>(flat->nodes.size());
      const CUresult result = Flatten(*node->child, after, flat);
      if (result != CUDA_SUCCESS) return result;
      for (auto i = first; i < flat->nodes.size(); ++i) after.push_back(i);
    }
    wire::GraphNode made;
    const CUresult result = Translate(*node, &made);
    if (result != CUDA_SUCCESS) {
      flat->bad = node;
      return result;
    }
    made.after = std::move(after);
    (*flat->places)[node] = static_cast<std::uint32_t>(flat->nodes.size());
    flat->nodes.push_back(std::move(made));
    for (const GraphNode* follower : node->after) {
      if (--missing[follower] == 0) ready.push_back(follower);
    }
  }
  return ready.size() == graph.nodes.size() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;  // a cycle
}

}  // namespace allranks::shim

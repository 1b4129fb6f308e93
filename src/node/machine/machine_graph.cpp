// Executable graphs. A launch makes an operation of each node, by the same calls that streams use:
// a private stream per node stands between it and those it waits for. Two more operations stand at
// the ends: the beginning, which is ordered as the stream says and costs a graph's launch, and the
// end, which is what the stream's later work waits for.
#include <algorithm>
#include <utility>

#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

constexpr std::size_t kMaxGraphs = 1 << 12;        // of a process
constexpr std::size_t kMaxNodes = kMaxQueued / 2;  // of a graph
constexpr std::size_t kMaxEdges = 1 << 20;
constexpr std::size_t kMaxParamBytes = 1 << 15;  // hardware takes 32,764
constexpr std::size_t kMaxAllNodes = 1 << 18;    // of all graphs of a process

}  // namespace

// Finds out early what can be known before a launch. Memory may come and go.
Status MachineImpl::CheckNode(ProcessId process, const GraphNode& node, std::uint32_t place) {
  for (const std::uint32_t before : node.after) {
    if (before >= place) return Status::kInvalidValue;
  }
  const Process* found = Find(process);
  if (found == nullptr || DeviceOf(*found, node.device) == nullptr) return Status::kInvalidDevice;
  if (node.kind == GraphNode::Kind::kRecord || node.kind == GraphNode::Kind::kWait) {
    return FindEvent(process, node.event) != nullptr ? Status::kSuccess : Status::kInvalidHandle;
  }
  if (node.kind != GraphNode::Kind::kKernel) return Status::kSuccess;
  const auto it = kernels_.find(node.launch.kernel);
  if (it == kernels_.end()) return Status::kInvalidHandle;
  const LoadedModule& module = modules_.at(it->second.module);
  if (module.process != process || module.device != sim_.NumberOf(*found, node.device))
    return Status::kInvalidHandle;
  const Status status = DecodeKernel(it->second);
  if (status != Status::kSuccess) return status;
  if (node.launch.params.size() > kMaxParamBytes) return Status::kInvalidValue;
  return sim_.residency.CheckLaunch(*it->second.code, node.launch, it->second.dynamic_shared_limit);
}

Status MachineImpl::PutGraph(ProcessId process, std::vector<GraphNode> nodes, GraphId* graph) {
  std::size_t owned = 0, all = nodes.size();
  for (const auto& [id, known] : graphs_) {
    if (known.process != process) continue;
    ++owned;
    all += known.nodes.size();
  }
  if (owned >= kMaxGraphs || nodes.size() > kMaxNodes || all > kMaxAllNodes)
    return Status::kOutOfMemory;
  std::size_t edges = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    edges += nodes[i].after.size();
    if (edges > kMaxEdges) return Status::kOutOfMemory;
    const Status status = CheckNode(process, nodes[i], static_cast<std::uint32_t>(i));
    if (status != Status::kSuccess) return status;
  }
  *graph = next_id_++;
  ExecutableGraph& made = graphs_[*graph];
  made.process = process;
  made.nodes = std::move(nodes);
  return Status::kSuccess;
}

Status MachineImpl::UpdateGraph(ProcessId process, GraphId graph, std::uint32_t place,
                                GraphNode node) {
  const auto it = graphs_.find(graph);
  if (it == graphs_.end() || it->second.process != process) return Status::kInvalidHandle;
  if (place >= it->second.nodes.size()) return Status::kInvalidValue;
  GraphNode& old = it->second.nodes[place];
  node.after = old.after;
  const Status status = CheckNode(process, node, place);
  if (status == Status::kSuccess) old = std::move(node);
  return status;
}

Status MachineImpl::DropGraph(ProcessId process, GraphId graph) {
  const auto it = graphs_.find(graph);
  if (it == graphs_.end() || it->second.process != process) return Status::kInvalidHandle;
  graphs_.erase(it);
  return Status::kSuccess;
}

Status MachineImpl::EnqueueNode(ProcessId process, StreamId lane, const GraphNode& node, Time at) {
  OpId op = 0;
  switch (node.kind) {
    case GraphNode::Kind::kEmpty:
      Enqueue(streams_.at(lane),
              NewOperation(Operation::Kind::kJoin, process, streams_.at(lane).device), at);
      return Status::kSuccess;
    case GraphNode::Kind::kKernel:
      return Launch(process, lane, node.launch, true, at, &op);
    case GraphNode::Kind::kCopy:
      return Copy(process, lane, std::make_shared<CopyRequest>(node.copy), at, &op);
    case GraphNode::Kind::kMemset:
      return Memset(process, lane, node.memset, at, &op);
    case GraphNode::Kind::kHost:
      return CallHost(process, lane, node.host, at, &op);
    case GraphNode::Kind::kRecord:
      return RecordEvent(process, lane, node.event, at);
    case GraphNode::Kind::kWait:
      return WaitEvent(process, lane, node.event, at);
    case GraphNode::Kind::kValues:
      return Values(process, lane, node.values, at, &op);
  }
  return Status::kInvalidValue;
}

Status MachineImpl::LaunchGraph(ProcessId process, StreamId stream, GraphId graph, Time at,
                                OpId* id) {
  Stream* s = FindStream(process, stream);
  const auto it = graphs_.find(graph);
  if (s == nullptr || it == graphs_.end() || it->second.process != process)
    return Status::kInvalidHandle;
  ExecutableGraph& executable = it->second;
  if (queued_[process] + executable.nodes.size() + 2 > kMaxQueued) return Status::kOutOfMemory;

  Operation& begin = NewOperation(Operation::Kind::kGraph, process, s->device);
  const OpId begin_id = begin.id;
  Depend(begin, executable.last);
  Enqueue(*s, begin, at);

  // A node that does nothing (a copy of no bytes, a wait for an event that was never recorded) has
  // no operation; who waits for it waits for all it waited for.
  std::vector<std::vector<OpId>> ends(executable.nodes.size());
  std::vector<bool> waited_for(executable.nodes.size());
  const StreamId lane = next_id_++;
  Status status = Status::kSuccess;
  for (std::size_t i = 0; i < executable.nodes.size() && status == Status::kSuccess; ++i) {
    const GraphNode& node = executable.nodes[i];
    std::vector<OpId> before;
    for (const std::uint32_t k : node.after) {
      before.insert(before.end(), ends[k].begin(), ends[k].end());
      waited_for[k] = true;
    }
    // A node may be named twice, and nodes without an operation hand on what they waited for.
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    if (before.empty()) before.push_back(begin_id);
    Stream& made = streams_[lane];
    made = {};
    made.process = process;
    made.device = sim_.NumberOf(sim_.ProcessOf(process), node.device);
    made.non_blocking = true;
    made.priority = s->priority;
    made.also = before;
    made.shown = s->shown;
    // Its operation was asked for where the node was made, not where the graph is launched.
    const SiteId site = i < executable.sites.size() ? executable.sites[i] : 0;
    const SiteId caller = checker_ != nullptr ? checker_->caller : 0;
    if (site != 0) checker_->caller = site;
    status = EnqueueNode(process, lane, node, at);
    if (site != 0) checker_->caller = caller;
    const OpId end = streams_.at(lane).tail;
    ends[i] = end != 0 ? std::vector<OpId>{end} : std::move(before);
  }
  streams_.erase(lane);

  Operation& last = NewOperation(Operation::Kind::kJoin, process, s->device);
  Depend(last, begin_id);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (waited_for[i]) continue;
    for (const OpId end : ends[i]) Depend(last, end);
  }
  s = FindStream(process, stream);
  Enqueue(*s, last, at);
  if (sim_.checker != nullptr) {
    for (const std::vector<OpId>& ops : ends) {
      for (const OpId end : ops) {
        const auto node = operations_.find(end);
        if (node != operations_.end()) checker_->EndsWith(node->second.clocks, last.clocks);
      }
    }
  }
  executable.last = last.id;
  *id = last.id;
  return status;
}

}  // namespace allranks::node

// Graphs: their operations are the streams' own, so each is translated as its message would be.
#include <utility>

#include "server/core.h"

namespace allranks::server {

using node::Hosts;
using node::OpId;
using node::Status;

bool Core::Translate(Thread thread, wire::GraphNode& message, node::GraphNode* node) {
  node->kind = static_cast<node::GraphNode::Kind>(message.kind);
  node->device = message.device;
  node->after = std::move(message.after);
  switch (message.kind) {
    case wire::GraphNode::Kind::kEmpty:
      return true;
    case wire::GraphNode::Kind::kKernel:
      return Translate(thread, message.launch, &node->launch);
    case wire::GraphNode::Kind::kCopy:
      node->copy.dst = message.copy.dst;
      node->copy.src = message.copy.src;
      node->copy.size = message.copy.size;
      node->copy.rows = RowsOf(message.copy.rows);
      return node->copy.dst != 0 && node->copy.src != 0;
    case wire::GraphNode::Kind::kMemset:
      node->memset.dst = message.memset.dst;
      node->memset.value = message.memset.value;
      node->memset.width = message.memset.width;
      node->memset.count = message.memset.count;
      node->memset.rows = RowsOf(message.memset.rows);
      return true;
    case wire::GraphNode::Kind::kHost:
      node->host = {.function = message.host.function,
                    .argument = message.host.argument,
                    .after_error = message.host.after_error};
      return true;
    case wire::GraphNode::Kind::kRecord:
    case wire::GraphNode::Kind::kWait:
      node->event = message.event;
      return ProcessOf(thread).events.contains(message.event);
    case wire::GraphNode::Kind::kValues:
      node->values = ValuesOf(message.values);
      return true;
  }
  return false;
}

void Core::NoteSite(Thread thread, node::GraphId graph, std::uint32_t place,
                    const wire::GraphNode& message) {
  if (const node::SiteId site = SiteOf(thread, message.stack); site != 0)
    checking_->SetNodeSite(graph, place, site);
}

void Core::Handle(Thread thread, wire::PutGraph& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  std::vector<node::GraphNode> nodes(message.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!Translate(thread, message.nodes[i], &nodes[i]))
      return Fail<wire::PutGraph>(thread, Status::kInvalidHandle);
  }
  node::GraphId graph = 0;
  const Status status = machine_->PutGraph(MachineOf(thread), std::move(nodes), &graph);
  if (judged_ != nullptr && status == Status::kSuccess) judged_->MadeGraph(thread.rank, graph);
  for (std::size_t i = 0; status == Status::kSuccess && i < message.nodes.size(); ++i)
    NoteSite(thread, graph, static_cast<std::uint32_t>(i), message.nodes[i]);
  Reply<wire::PutGraph>(thread, {.graph = graph}, status);
}

void Core::Handle(Thread thread, wire::UpdateGraph& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (message.places.size() != message.nodes.size())
    return Fail<wire::UpdateGraph>(thread, Status::kInvalidValue);
  Status status = Status::kSuccess;
  for (std::size_t i = 0; i < message.nodes.size() && status == Status::kSuccess; ++i) {
    node::GraphNode node;
    if (!Translate(thread, message.nodes[i], &node))
      return Fail<wire::UpdateGraph>(thread, Status::kInvalidHandle);
    status =
        machine_->UpdateGraph(MachineOf(thread), message.graph, message.places[i], std::move(node));
    if (status == Status::kSuccess)
      NoteSite(thread, message.graph, message.places[i], message.nodes[i]);
  }
  Fail<wire::UpdateGraph>(thread, status);
}

void Core::Handle(Thread thread, const wire::DropGraph& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  Fail<wire::DropGraph>(thread, machine_->DropGraph(MachineOf(thread), message.graph));
}

void Core::Handle(Thread thread, const wire::LaunchGraph& message, Time at) {
  const auto stream = Find(thread, message.stream);
  if (!stream) return Fail<wire::LaunchGraph>(thread, Status::kInvalidHandle);
  OpId op = 0;
  Fail<wire::LaunchGraph>(
      thread, machine_->LaunchGraph(MachineOf(thread), stream->id, message.graph, at, &op));
}

}  // namespace allranks::server

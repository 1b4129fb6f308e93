// Graphs: their operations are the streams' own, so each is translated as its message would be.
#include "server/graph_calls.h"

#include <utility>
#include <vector>

#include "server/translate.h"

namespace allranks::server {

using node::Hosts;
using node::OpId;
using node::Status;

void GraphCalls::NoteSite(Thread thread, node::GraphId graph, std::uint32_t place,
                          const wire::GraphNode& message) {
  if (const node::SiteId site = desk_.SiteOf(thread, message.stack); site != 0)
    desk_.checking()->SetNodeSite(graph, place, site);
}

void GraphCalls::Handle(Thread thread, wire::PutGraph& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  std::vector<node::GraphNode> nodes(message.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!Translate(desk_.ProcessOf(thread), message.nodes[i], &nodes[i]))
      return desk_.Fail<wire::PutGraph>(thread, Status::kInvalidHandle);
  }
  node::GraphId graph = 0;
  const Status status = work_.PutGraph(desk_.MachineOf(thread), std::move(nodes), &graph);
  if (desk_.judged() != nullptr && status == Status::kSuccess)
    desk_.judged()->MadeGraph(thread.rank, graph);
  for (std::size_t i = 0; status == Status::kSuccess && i < message.nodes.size(); ++i)
    NoteSite(thread, graph, static_cast<std::uint32_t>(i), message.nodes[i]);
  desk_.Reply<wire::PutGraph>(thread, {.graph = graph}, status);
}

void GraphCalls::Handle(Thread thread, wire::UpdateGraph& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  if (message.places.size() != message.nodes.size())
    return desk_.Fail<wire::UpdateGraph>(thread, Status::kInvalidValue);
  Status status = Status::kSuccess;
  for (std::size_t i = 0; i < message.nodes.size() && status == Status::kSuccess; ++i) {
    node::GraphNode node;
    if (!Translate(desk_.ProcessOf(thread), message.nodes[i], &node))
      return desk_.Fail<wire::UpdateGraph>(thread, Status::kInvalidHandle);
    status = work_.UpdateGraph(desk_.MachineOf(thread), message.graph, message.places[i],
                               std::move(node));
    if (status == Status::kSuccess)
      NoteSite(thread, message.graph, message.places[i], message.nodes[i]);
  }
  desk_.Fail<wire::UpdateGraph>(thread, status);
}

void GraphCalls::Handle(Thread thread, const wire::DropGraph& message, Time) {
  hosts_.Note(thread, Hosts::Activity::kActs);
  desk_.Fail<wire::DropGraph>(thread, work_.DropGraph(desk_.MachineOf(thread), message.graph));
}

void GraphCalls::Handle(Thread thread, const wire::LaunchGraph& message, Time at) {
  const auto stream = desk_.FindStream(thread, message.stream);
  if (!stream) return desk_.Fail<wire::LaunchGraph>(thread, Status::kInvalidHandle);
  OpId op = 0;
  desk_.Fail<wire::LaunchGraph>(
      thread, work_.LaunchGraph(desk_.MachineOf(thread), stream->id, message.graph, at, &op));
}

}  // namespace allranks::server

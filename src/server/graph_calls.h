// Handlers of graphs (wire/work_messages.h): their operations are the streams' own, so each is
// translated as its message would be.
#pragma once

#include <cstdint>

#include "node/hosts.h"
#include "node/ids.h"
#include "node/time.h"
#include "node/work_api.h"
#include "server/desk.h"
#include "wire/messages.h"

namespace allranks::server {

class GraphCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit GraphCalls(Desk& desk) : desk_(desk), hosts_(desk.hosts()), work_(desk.machine()) {}

  void Handle(Thread thread, wire::PutGraph& message, Time at);
  void Handle(Thread thread, wire::UpdateGraph& message, Time at);
  void Handle(Thread thread, const wire::DropGraph& message, Time at);
  void Handle(Thread thread, const wire::LaunchGraph& message, Time at);

 private:
  // Findings name the place in host code where a node was made.
  void NoteSite(Thread thread, node::GraphId graph, std::uint32_t place,
                const wire::GraphNode& message);

  Desk& desk_;
  node::Hosts& hosts_;
  node::WorkApi& work_;
};

}  // namespace allranks::server

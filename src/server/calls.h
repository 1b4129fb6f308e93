// The groups of handlers, and how a message finds its own. To add a message: a line in
// wire/messages.def, its struct, and one Handle in one of the groups. Two of them, or none, do not
// compile.
#pragma once

#include <tuple>

#include "node/hosts.h"
#include "node/time.h"
#include "server/desk.h"
#include "server/device_calls.h"
#include "server/error_calls.h"
#include "server/graph_calls.h"
#include "server/host_calls.h"
#include "server/judged.h"
#include "server/memory_calls.h"
#include "server/network_calls.h"
#include "server/poll_calls.h"
#include "server/share_calls.h"
#include "server/stream_calls.h"
#include "server/work_calls.h"

namespace allranks::server {

template <class Group, class M>
concept Handles = requires(Group& group, node::HostThread thread, M& message, node::Time at) {
  group.Handle(thread, message, at);
};

class Calls {
 public:
  explicit Calls(Desk& desk)
      : groups_(desk, desk, desk, desk, desk, desk, desk, desk, desk, desk) {}

  HostCalls& host() { return std::get<HostCalls>(groups_); }
  PollCalls& poll() { return std::get<PollCalls>(groups_); }
  NetworkCalls& network() { return std::get<NetworkCalls>(groups_); }
  const ErrorCalls& errors() const { return std::get<ErrorCalls>(groups_); }
  StreamCalls& stream() { return std::get<StreamCalls>(groups_); }
  ShareCalls& share() { return std::get<ShareCalls>(groups_); }

  // Has the message carried out by its group, or by `judged` (not null for a message that only
  // judged ranks send).
  template <class M>
  void Handle(Judged* judged, node::HostThread thread, M& message, node::Time at) {
    std::apply(
        [&]<class... Groups>([[maybe_unused]] Groups&... groups) {
          static_assert((Handles<Judged, M> + ... + Handles<Groups, M>) == 1,
                        "exactly one group handles a message");
          if constexpr (Handles<Judged, M>) {
            judged->Handle(thread, message, at);
          } else {
            (HandleBy(groups, thread, message, at), ...);
          }
        },
        groups_);
  }

 private:
  template <class Group, class M>
  static void HandleBy(Group& group, node::HostThread thread, M& message, node::Time at) {
    if constexpr (Handles<Group, M>) group.Handle(thread, message, at);
  }

  std::tuple<HostCalls, PollCalls, NetworkCalls, ErrorCalls, DeviceCalls, WorkCalls, StreamCalls,
             GraphCalls, MemoryCalls, ShareCalls>
      groups_;
};

}  // namespace allranks::server

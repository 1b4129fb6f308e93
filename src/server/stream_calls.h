// Handlers of what streams do beside kernels and copies (wire/work_messages.h): host functions and
// values in memory; and of devices and events that several processes know.
//
// A process runs its host functions on one thread of its own, which asks for the next one and waits
// here until a stream has got to it. When it asks again, the function has returned and the stream
// goes on. Functions of several streams queue up in the order in which their turns came.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "node/hosts.h"
#include "node/machine.h"
#include "node/requests.h"
#include "node/time.h"
#include "server/desk.h"
#include "wire/messages.h"

namespace allranks::server {

class StreamCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit StreamCalls(Desk& desk);

  void Handle(Thread thread, const wire::CallHost& message, Time at);
  void Handle(Thread thread, const wire::NextHostCall& message, Time at);
  void Handle(Thread thread, const wire::StreamValues& message, Time at);
  void Handle(Thread thread, const wire::SetVisible& message, Time at);
  void Handle(Thread thread, const wire::ExportEvent& message, Time at);
  void Handle(Thread thread, const wire::OpenEvent& message, Time at);

  // --- for the Core
  // Functions of the process that nobody will call any more.
  void DropHostFunctions(std::int32_t rank);
  void ThreadEnded(Thread thread);
  void ProcessEnded(std::int32_t rank) { host_functions_.erase(rank); }

 private:
  // Of one process.
  struct HostFunctions {
    std::deque<node::HostCall> due;  // whose turn has come
    std::optional<Thread> caller;    // the thread that waits for the next
  };
  // A stream has got to a host function.
  void HostCallDue(const node::HostCall& call, Time at);
  void AnswerHostCaller(Thread thread);

  Desk& desk_;
  node::Hosts& hosts_;
  node::Machine& machine_;
  std::map<std::int32_t, HostFunctions> host_functions_;  // by rank
};

}  // namespace allranks::server

// Handlers of streams, events, launches and copies (wire/device_messages.h): what a thread
// enqueues, asks about and waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "node/hosts.h"
#include "node/ids.h"
#include "node/time.h"
#include "node/work_api.h"
#include "server/desk.h"
#include "wire/messages.h"

namespace allranks::server {

class WorkCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit WorkCalls(Desk& desk) : desk_(desk), hosts_(desk.hosts()), work_(desk.machine()) {}

  void Handle(Thread thread, const wire::CreateStream& message, Time at);
  void Handle(Thread thread, const wire::DestroyStream& message, Time at);
  void Handle(Thread thread, const wire::StreamSync& message, Time at);
  void Handle(Thread thread, const wire::DeviceSync& message, Time at);
  void Handle(Thread thread, const wire::CreateEvent& message, Time at);
  void Handle(Thread thread, const wire::DestroyEvent& message, Time at);
  void Handle(Thread thread, const wire::RecordEvent& message, Time at);
  void Handle(Thread thread, const wire::WaitEvent& message, Time at);
  void Handle(Thread thread, const wire::RecordContext& message, Time at);
  void Handle(Thread thread, const wire::WaitContext& message, Time at);
  void Handle(Thread thread, const wire::EventSync& message, Time at);
  void Handle(Thread thread, const wire::EventElapsed& message, Time at);
  void Handle(Thread thread, const wire::StreamQuery& message, Time at);
  void Handle(Thread thread, const wire::EventQuery& message, Time at);
  void Handle(Thread thread, wire::Launch& message, Time at);
  void Handle(Thread thread, const wire::Copy& message, Time at);
  void Handle(Thread thread, wire::CopyIn& message, Time at);
  void Handle(Thread thread, const wire::CopyOut& message, Time at);
  void Handle(Thread thread, const wire::Memset& message, Time at);

 private:
  // Answers whether all are done; a thread that asks over and over is left waiting.
  template <class M>
  void AnswerQuery(Thread thread, std::vector<node::OpId> ops, std::uint64_t object, int device,
                   Time at);
  void CountQueued(Thread thread, node::OpId op, std::uint64_t bytes);

  Desk& desk_;
  node::Hosts& hosts_;
  node::WorkApi& work_;
};

}  // namespace allranks::server

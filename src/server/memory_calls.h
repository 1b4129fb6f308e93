// Handlers of stream-ordered memory and its pools, registered and managed memory
// (wire/memory_messages.h): what the Machine takes on trust is checked here, then MemoryApi does
// it.
#pragma once

#include "node/hosts.h"
#include "node/memory_api.h"
#include "node/time.h"
#include "server/desk.h"
#include "wire/messages.h"

namespace allranks::server {

class MemoryCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit MemoryCalls(Desk& desk) : desk_(desk), hosts_(desk.hosts()), memory_(desk.machine()) {}

  void Handle(Thread thread, const wire::DefaultPool& message, Time at);
  void Handle(Thread thread, const wire::CreatePool& message, Time at);
  void Handle(Thread thread, const wire::DestroyPool& message, Time at);
  void Handle(Thread thread, const wire::GetPoolAttribute& message, Time at);
  void Handle(Thread thread, const wire::SetPoolAttribute& message, Time at);
  void Handle(Thread thread, const wire::TrimPool& message, Time at);
  void Handle(Thread thread, const wire::SetPoolAccess& message, Time at);
  void Handle(Thread thread, const wire::GetPoolAccess& message, Time at);
  void Handle(Thread thread, const wire::AllocAsync& message, Time at);
  void Handle(Thread thread, const wire::FreeAsync& message, Time at);
  void Handle(Thread thread, const wire::RegisterHost& message, Time at);
  void Handle(Thread thread, const wire::Prefetch& message, Time at);

 private:
  Desk& desk_;
  node::Hosts& hosts_;
  node::MemoryApi& memory_;
};

}  // namespace allranks::server

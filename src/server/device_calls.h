// Handlers of the device API without streams: devices, modules, memory (wire/device_messages.h).
// What the Machine takes on trust is checked here, then it is asked.
#pragma once

#include "node/hosts.h"
#include "node/machine.h"
#include "node/time.h"
#include "server/desk.h"
#include "server/image_files.h"
#include "wire/messages.h"

namespace allranks::server {

class DeviceCalls {
 public:
  using Thread = node::HostThread;
  using Time = node::Time;

  explicit DeviceCalls(Desk& desk);

  void Handle(Thread thread, const wire::Init& message, Time at);
  void Handle(Thread thread, wire::PutImage& message, Time at);
  void Handle(Thread thread, const wire::FileImage& message, Time at);
  void Handle(Thread thread, const wire::DropImage& message, Time at);
  void Handle(Thread thread, const wire::LoadModule& message, Time at);
  void Handle(Thread thread, const wire::UnloadModule& message, Time at);
  void Handle(Thread thread, const wire::GetKernel& message, Time at);
  void Handle(Thread thread, const wire::GetGlobal& message, Time at);
  void Handle(Thread thread, const wire::SetLimit& message, Time at);
  void Handle(Thread thread, const wire::ListKernels& message, Time at);
  void Handle(Thread thread, const wire::SetMaxDynamicShared& message, Time at);
  void Handle(Thread thread, const wire::Occupancy& message, Time at);
  void Handle(Thread thread, const wire::Alloc& message, Time at);
  void Handle(Thread thread, const wire::Free& message, Time at);
  void Handle(Thread thread, const wire::AllocPinned& message, Time at);
  void Handle(Thread thread, const wire::FreePinned& message, Time at);
  void Handle(Thread thread, const wire::Describe& message, Time at);
  void Handle(Thread thread, const wire::IpcExport& message, Time at);
  void Handle(Thread thread, const wire::IpcOpen& message, Time at);
  void Handle(Thread thread, const wire::IpcClose& message, Time at);
  void Handle(Thread thread, const wire::CanAccessPeer& message, Time at);
  void Handle(Thread thread, const wire::EnablePeer& message, Time at);
  void Handle(Thread thread, const wire::DisablePeer& message, Time at);
  void Handle(Thread thread, const wire::MemInfo& message, Time at);
  void Handle(Thread thread, const wire::LinkTraffic& message, Time at);
  void Handle(Thread thread, const wire::StickyError& message, Time at);
  void Handle(Thread thread, const wire::ResetDevice& message, Time at);

 private:
  int FirstDevice(Thread thread) const;

  Desk& desk_;
  node::Hosts& hosts_;
  node::Machine& machine_;
  ImageFiles files_;
};

}  // namespace allranks::server

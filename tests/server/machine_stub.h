// A Machine that simulates nothing: every call that has one answer for tests of the server, which
// is mostly that it did nothing or that it cannot. FakeMachine has the rest.
#pragma once

#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "node/machine.h"

namespace allranks::server {

class MachineStub : public node::Machine {
 public:
  using Status = node::Status;
  using Time = node::Time;

  node::Checking* checking() override { return nullptr; }
  node::LateWakes* late_wakes() override { return nullptr; }

  Status SetVisible(node::ProcessId, std::span<const std::int32_t>) override {
    return Status::kSuccess;
  }
  Status StickyError(node::ProcessId, int) const override { return Status::kSuccess; }
  void ResetDevice(node::ProcessId, int) override {}
  Status UnloadModule(node::ProcessId, node::ModuleId) override { return Status::kSuccess; }
  Status ClusterOccupancy(node::KernelId, std::uint32_t, std::uint32_t, std::uint32_t,
                          int* clusters) override {
    *clusters = 1;
    return Status::kSuccess;
  }
  Status GetGlobal(node::ModuleId, const std::string&, node::GlobalInfo*) override {
    return Status::kNotFound;
  }
  Status SetMaxDynamicShared(node::KernelId, std::uint32_t) override { return Status::kSuccess; }
  Status Occupancy(node::KernelId, std::uint32_t, std::uint32_t, int* ctas) override {
    *ctas = 1;
    return Status::kSuccess;
  }
  node::PoolId DefaultPool(node::ProcessId, int device) override {
    return 1 + static_cast<node::PoolId>(device);
  }
  Status ExportPool(node::ProcessId, node::PoolId, int*) override { return Status::kNotSupported; }
  Status ExportPool(node::ProcessId, node::PoolId, node::FabricHandle*) override {
    return Status::kNotSupported;
  }
  Status ImportPool(node::ProcessId, int, node::PoolId*, int*) override {
    return Status::kNotSupported;
  }
  Status ImportPool(node::ProcessId, const node::FabricHandle&, node::PoolId*, int*) override {
    return Status::kNotSupported;
  }
  Status ExportPointer(node::ProcessId, node::Address, node::IpcHandle*) override {
    return Status::kNotSupported;
  }
  Status ImportPointer(node::ProcessId, node::PoolId, const node::IpcHandle&,
                       node::Address*) override {
    return Status::kNotSupported;
  }
  Status CreatePool(node::ProcessId, int, std::uint64_t, std::uint32_t, node::PoolId*) override {
    return Status::kNotSupported;
  }
  Status DestroyPool(node::ProcessId, node::PoolId) override { return Status::kInvalidValue; }
  Status GetPoolAttribute(node::ProcessId, node::PoolId, node::PoolAttribute,
                          std::uint64_t*) override {
    return Status::kNotSupported;
  }
  Status SetPoolAttribute(node::ProcessId, node::PoolId, node::PoolAttribute,
                          std::uint64_t) override {
    return Status::kNotSupported;
  }
  Status TrimPool(node::ProcessId, node::PoolId, std::uint64_t) override {
    return Status::kSuccess;
  }
  Status SetPoolAccess(node::ProcessId, node::PoolId, int, bool) override {
    return Status::kSuccess;
  }
  Status GetPoolAccess(node::ProcessId, node::PoolId, int, bool* access) override {
    *access = true;
    return Status::kSuccess;
  }
  Status Prefetch(node::ProcessId, node::StreamId, node::Address, std::uint64_t, int, Time,
                  node::OpId*) override {
    return Status::kSuccess;
  }
  Status RegisterHost(node::ProcessId, node::Address, std::uint64_t, const node::HostFile&,
                      node::PinnedMemory*) override {
    return Status::kNotSupported;
  }
  node::VirtualMemory& virtual_memory() override { std::abort(); }
  node::PointerInfo Describe(node::ProcessId, node::Address) const override { return {}; }
  Status IpcExport(node::ProcessId, node::Address, node::IpcHandle*) override {
    return Status::kNotSupported;
  }
  Status IpcOpen(node::ProcessId, int, const node::IpcHandle&, node::Address*) override {
    return Status::kNotSupported;
  }
  Status IpcClose(node::ProcessId, node::Address) override { return Status::kNotSupported; }
  bool CanAccessPeer(node::ProcessId, int, int) const override { return true; }
  Status EnablePeer(node::ProcessId, int, int) override { return Status::kSuccess; }
  Status DisablePeer(node::ProcessId, int, int) override { return Status::kSuccess; }
  Status DestroyStream(node::ProcessId, node::StreamId) override { return Status::kSuccess; }
  Status ExportEvent(node::ProcessId, node::EventId, node::IpcHandle*) override {
    return Status::kNotSupported;
  }
  Status OpenEvent(node::ProcessId, const node::IpcHandle&, int*, node::EventId*) override {
    return Status::kNotSupported;
  }
  Status DestroyEvent(node::ProcessId, node::EventId) override { return Status::kSuccess; }
  Status WaitEvent(node::ProcessId, node::StreamId, node::EventId, Time) override {
    return Status::kSuccess;
  }
  Status WaitContext(node::ProcessId, int, node::EventId, Time) override {
    return Status::kSuccess;
  }
  void SetRankKiller(std::function<void(int, Time)>) override {}
  Status FinishHostCall(node::ProcessId, node::OpId, Time) override { return Status::kSuccess; }
  Status Values(node::ProcessId, node::StreamId, std::vector<node::ValueOp>, Time,
                node::OpId*) override {
    return Status::kNotSupported;
  }
  Status PutGraph(node::ProcessId, std::vector<node::GraphNode>, node::GraphId*) override {
    return Status::kNotSupported;
  }
  Status UpdateGraph(node::ProcessId, node::GraphId, std::uint32_t, node::GraphNode) override {
    return Status::kNotSupported;
  }
  Status DropGraph(node::ProcessId, node::GraphId) override { return Status::kNotSupported; }
  Status LaunchGraph(node::ProcessId, node::StreamId, node::GraphId, Time, node::OpId*) override {
    return Status::kNotSupported;
  }
  Status EventTime(node::ProcessId, node::EventId, Time*) override {
    return Status::kInvalidHandle;
  }
  void CoolCaches() override {}
  void SetFuel(std::uint64_t) override {}
  Status Act(node::ProcessId, node::StreamId, Time, std::function<void(Time)>, Time,
             node::OpId*) override {
    return Status::kNotSupported;
  }
  bool Peek(node::ProcessId, node::Address, std::span<std::byte>) const override { return false; }
  bool Poke(node::ProcessId, node::Address, std::span<const std::byte>) override { return false; }
  bool PokeFile(node::ProcessId, node::Address, const node::FileBytes&) override { return false; }
  bool KeepInFile(node::ProcessId, node::Address, const node::FileBytes&) override { return false; }
  void HideFromDevices(node::ProcessId, node::Address) override {}
  void Withdraw(node::ProcessId, node::Address) override {}
  void Restore(node::ProcessId) override {}
  void SeparateHost(node::ProcessId, node::Address) override {}
  void ShowHost(node::ProcessId) override {}
  void OwnPinned() override {}
  void SetMaxResident(node::ProcessId, std::uint32_t) override {}
  void SetPassOver(bool) override {}
  std::vector<node::Fault> TakeFaults() override { return {}; }
  Status SetLimit(node::ProcessId, int, node::DeviceLimit, std::uint64_t) override {
    return Status::kSuccess;
  }
};

}  // namespace allranks::server

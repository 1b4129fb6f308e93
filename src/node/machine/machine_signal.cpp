// What streams do beside kernels and copies: they call functions of their process, write values to
// memory and wait for values there. A wait is a watch on the bytes (memory.h), like a host's poll.
#include <algorithm>
#include <cstring>
#include <utility>

#include "node/check/errors.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

constexpr std::size_t kMaxValues = 256;  // in one batch, as hardware has it

// The comparison at the operand's width; kGreaterOrEqual is cyclic, as the driver documents it.
bool Holds(const ValueOp& op, std::uint64_t seen) {
  if (op.width == 4) {
    const auto have = static_cast<std::uint32_t>(seen);
    const auto want = static_cast<std::uint32_t>(op.value);
    switch (op.compare) {
      case ValueOp::Compare::kGreaterOrEqual:
        return static_cast<std::int32_t>(have - want) >= 0;
      case ValueOp::Compare::kEqual:
        return have == want;
      case ValueOp::Compare::kAnd:
        return (have & want) != 0;
      case ValueOp::Compare::kNor:
        return ~(have | want) != 0;
    }
  }
  switch (op.compare) {
    case ValueOp::Compare::kGreaterOrEqual:
      return static_cast<std::int64_t>(seen - op.value) >= 0;
    case ValueOp::Compare::kEqual:
      return seen == op.value;
    case ValueOp::Compare::kAnd:
      return (seen & op.value) != 0;
    case ValueOp::Compare::kNor:
      return ~(seen | op.value) != 0;
  }
  return false;
}

std::uint64_t Read(const Place& place, int width) {
  std::uint64_t value = 0;
  std::memcpy(&value, place.object->data + place.offset, static_cast<std::size_t>(width));
  return value;
}

}  // namespace

Status MachineImpl::CallHost(ProcessId process, StreamId stream, const HostFunction& function,
                             Time at, OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  Operation& op = NewOperation(Operation::Kind::kHost, process, s->device);
  op.host = function;
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

void MachineImpl::StartHost(Operation& op) {
  if (!host_caller_) {
    Complete(op.id, sim_.now);
    return;
  }
  if (sim_.checker != nullptr) checker_->HostCalled(op.clocks);
  host_caller_({op.process, op.id, op.host, Sticky(op.process, op.device)}, sim_.now);
}

Status MachineImpl::FinishHostCall(ProcessId process, OpId op, Time at) {
  const auto it = operations_.find(op);
  if (it == operations_.end() || it->second.process != process ||
      it->second.kind != Operation::Kind::kHost || !it->second.started) {
    return Status::kInvalidValue;
  }
  if (sim_.checker != nullptr) checker_->HostReturns(it->second.clocks);
  Complete(op, std::max(at, sim_.now));
  return Status::kSuccess;
}

Status MachineImpl::Values(ProcessId process, StreamId stream, std::vector<ValueOp> values, Time at,
                           OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (values.size() > kMaxValues) return Status::kInvalidValue;
  std::vector<Place> places(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ValueOp& value = values[i];
    if (value.kind == ValueOp::Kind::kBarrier) continue;
    if (value.width != 4 && value.width != 8) return Status::kInvalidValue;
    const auto width = static_cast<std::uint64_t>(value.width);
    const bool write = value.kind != ValueOp::Kind::kWait;
    if (value.address % width != 0 ||
        !Resolve(process, s->device, value.address, width, write, &places[i])) {
      return Status::kInvalidValue;
    }
  }
  Operation& op = NewOperation(Operation::Kind::kValues, process, s->device);
  op.values = std::move(values);
  op.places = std::move(places);
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

void MachineImpl::StepValues(OpId id) {
  const auto it = operations_.find(id);
  if (it == operations_.end()) return;
  Operation& op = it->second;
  if (op.voided) {  // the context has ended in between
    value_waits_.erase(id);
    Complete(id, sim_.now);
    return;
  }
  const Device& device = sim_.devices[static_cast<std::size_t>(op.device)];
  for (; op.step < op.values.size(); ++op.step) {
    const ValueOp& value = op.values[op.step];
    if (value.kind == ValueOp::Kind::kBarrier) continue;
    if (value.kind == ValueOp::Kind::kWait) {
      if (HasValue(op)) continue;
      return;
    }
    At(sim_.now + sim_.timing.DelayTo(device, *op.places[op.step].object), [this, id] {
      const auto found = operations_.find(id);
      if (found == operations_.end()) return;
      Operation& o = found->second;
      if (o.voided) return StepValues(id);
      const ValueOp& write = o.values[o.step];
      const Place& place = o.places[o.step];
      const auto width = static_cast<std::uint64_t>(write.width);
      sim_.last_change = sim_.now;
      sim_.timer_wakes = 0;
      place.ForParts(
          width, [&](Object& object, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
            std::byte old[8];
            std::memcpy(old, object.data + offset, bytes);
            std::memcpy(object.data + offset, &write.value, bytes);
            check::Errors::OnWrite(object, offset, bytes);
            if (sim_.checker != nullptr) {
              checker_->StreamWrites(o.clocks, object, offset, static_cast<std::uint32_t>(bytes),
                                     old, write.kind == ValueOp::Kind::kWrite);
            }
            sim_.waiting.NotifyWrite(object, offset, bytes, sim_.now, sim_.now, id);
          });
      ++o.step;
      StepValues(id);
    });
    return;
  }
  Complete(id, sim_.now);
}

bool MachineImpl::HasValue(Operation& op) {
  const ValueOp& value = op.values[op.step];
  const Place& place = op.places[op.step];
  Object& object = *place.object;
  const auto width = static_cast<std::uint32_t>(value.width);
  const std::uint64_t newest = Read(place, value.width);
  std::uint64_t seen = newest;
  object.late.Hide(place.offset, width, reinterpret_cast<std::byte*>(&seen), sim_.now, 0);
  if (Holds(value, seen)) {
    if (sim_.checker != nullptr) checker_->StreamWaited(op.clocks, object, place.offset, width);
    value_waits_.erase(op.id);
    return true;
  }
  value_waits_.insert(op.id);
  op.watch = next_id_++;
  HostWatching watching;
  watching.objects.push_back(place.object);
  watching.changed = [this, id = op.id](Time) { StepValues(id); };
  object.watches.Add({place.offset, width, nullptr, op.watch, 0});
  host_watches_.emplace(op.watch, std::move(watching));
  if (seen != newest) {  // something is on its way already
    const Time visible = object.late.Next(place.offset, width, sim_.now);
    if (visible != kTimeNever) sim_.waiting.on_host_watch(op.watch, visible);
  }
  return false;
}

void MachineImpl::RecheckValues(Time at) {
  for (const OpId id : value_waits_) {
    const Operation& op = operations_.at(id);
    const Place& place = op.places[op.step];
    if (!place.object->HostVisible()) continue;
    const ValueOp& value = op.values[op.step];
    if (Holds(value, Read(place, value.width)))
      sim_.waiting.on_host_watch(op.watch, at + sim_.costs.host);
  }
}

}  // namespace allranks::node

// Copies and memsets: operations of the copy engines, charged and applied piece by piece.
#include <algorithm>
#include <cstring>

#include "node/machine_impl.h"

namespace allranks::node {
namespace {

// A copy proceeds in pieces of this size, each applied when it has arrived.
constexpr std::uint64_t kCopyPiece = std::uint64_t{1} << 20;

}  // namespace

// One piece of a copy or memset: charged now, applied when it has arrived.
void MachineImpl::StepCopy(OpId id) {
  Operation& op = operations_.at(id);
  const std::uint64_t piece = std::min(kCopyPiece, op.size - op.done);
  const int from = op.src.object != nullptr ? op.src.object->device : -1;
  const int to = op.dst.object != nullptr ? op.dst.object->device : -1;
  const bool memset = op.what == Operation::What::kMemset;
  const Time arrival = world_.ChargeCopy(memset ? to : from, to, piece, world_.now);
  At(arrival, [this, id, piece, memset] {
    const auto it = operations_.find(id);
    if (it == operations_.end()) return;
    Operation& o = it->second;
    std::byte* dst = o.dst.object != nullptr ? o.dst.object->data + o.dst.offset + o.done
                                             : o.copy->bytes.data() + o.done;
    if (memset) {
      for (std::uint64_t i = 0; i < piece; i += static_cast<std::uint64_t>(o.width)) {
        std::memcpy(dst + i, &o.value, static_cast<std::size_t>(o.width));
      }
    } else {
      const std::byte* src = o.src.object != nullptr ? o.src.object->data + o.src.offset + o.done
                                                     : o.copy->bytes.data() + o.done;
      std::memmove(dst, src, piece);
    }
    if (o.dst.object != nullptr) {
      Object& object = *o.dst.object;
      world_.last_change = world_.now;
      world_.timer_wakes = 0;
      if (!object.watches.empty()) {
        world_.NotifyWrite(object, o.dst.offset + o.done, piece, world_.now, world_.now);
      }
    }
    o.done += piece;
    if (o.done < o.size) {
      StepCopy(id);
      return;
    }
    world_.stats.copies[o.record].end = world_.now;
    Complete(id, world_.now);
  });
}

bool MachineImpl::Resolve(ProcessId process, Address address, std::uint64_t size,
                          Place* place) const {
  const Mapping* mapping = world_.ProcessOf(process).table.Find(address);
  if (mapping == nullptr) return false;
  const std::uint64_t offset = address - mapping->base;
  if (size > mapping->object->size || offset > mapping->object->size - size) return false;
  place->object = mapping->object;
  place->offset = offset;
  return true;
}

Status MachineImpl::Copy(ProcessId process, StreamId stream, std::shared_ptr<CopyRequest> copy,
                         Time at, OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (copy->size == 0) {
    *id = 0;
    return Status::kSuccess;
  }
  Place src, dst;
  if (copy->src != 0) {
    if (!Resolve(process, copy->src, copy->size, &src)) return Status::kInvalidValue;
  } else if (copy->bytes.size() < copy->size) {
    return Status::kInvalidValue;
  }
  if (copy->dst != 0) {
    if (!Resolve(process, copy->dst, copy->size, &dst)) return Status::kInvalidValue;
  } else {
    if (copy->src == 0) return Status::kInvalidValue;
    copy->bytes.resize(copy->size);
  }
  Operation& op = NewOperation(Operation::What::kCopy, process, s->device);
  op.copy = std::move(copy);
  op.size = op.copy->size;
  op.src = std::move(src);
  op.dst = std::move(dst);
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

Status MachineImpl::Memset(ProcessId process, StreamId stream, Address dst, std::uint32_t value,
                           int width, std::uint64_t count, Time at, OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (width != 1 && width != 2 && width != 4) return Status::kInvalidValue;
  if (count == 0) {
    *id = 0;
    return Status::kSuccess;
  }
  const auto step = static_cast<std::uint64_t>(width);
  Place place;
  if (count > (std::uint64_t{1} << 48) || !Resolve(process, dst, count * step, &place) ||
      dst % step != 0) {
    return Status::kInvalidValue;
  }
  Operation& op = NewOperation(Operation::What::kMemset, process, s->device);
  op.dst = std::move(place);
  op.size = count * step;
  op.value = value;
  op.width = width;
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

}  // namespace allranks::node

// Copies and memsets, of one row or of many: the checks before they are queued, and the pieces in
// which they then happen.
#include <algorithm>
#include <cstring>

#include "node/machine_impl.h"

namespace allranks::node {
namespace {

// A copy proceeds in pieces of this size, each applied when it has arrived.
constexpr std::uint64_t kCopyPiece = std::uint64_t{1} << 20;
// No region is larger; keeps products of hostile numbers within 64 bits.
constexpr std::uint64_t kMaxSpan = std::uint64_t{1} << 48;

bool Product(std::uint64_t a, std::uint64_t b, std::uint64_t* out) {
  return !__builtin_mul_overflow(a, b, out) && *out <= kMaxSpan;
}

// Bytes from the first to the last of a region; false if its rows overlap or it cannot be.
bool Span(std::uint64_t row, const Rows& rows, std::uint64_t pitch, std::uint64_t slice,
          std::uint64_t* span) {
  std::uint64_t plane = 0, planes = 0;
  if (row > kMaxSpan) return false;
  if (rows.height > 1 && pitch < row) return false;
  if (!Product(rows.height - 1, rows.height > 1 ? pitch : 0, &plane)) return false;
  plane += row;
  if (rows.depth > 1 && slice < plane) return false;
  if (!Product(rows.depth - 1, rows.depth > 1 ? slice : 0, &planes)) return false;
  *span = planes + plane;
  return *span <= kMaxSpan;
}

}  // namespace

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
  *id = 0;
  Rows rows = copy->rows;
  if (copy->size == 0 || rows.height == 0 || rows.depth == 0) return Status::kSuccess;
  std::uint64_t packed_slice = 0, total = 0, span = 0;
  if (!Product(copy->size, rows.height, &packed_slice) ||
      !Product(packed_slice, rows.depth, &total)) {
    return Status::kInvalidValue;
  }
  Place src, dst;
  if (copy->src != 0) {
    if (!Span(copy->size, rows, rows.src_pitch, rows.src_slice, &span) ||
        !Resolve(process, copy->src, span, &src)) {
      return Status::kInvalidValue;
    }
  } else {
    if (copy->bytes.size() < total) return Status::kInvalidValue;
    rows.src_pitch = copy->size;
    rows.src_slice = packed_slice;
  }
  if (copy->dst != 0) {
    if (!Span(copy->size, rows, rows.dst_pitch, rows.dst_slice, &span) ||
        !Resolve(process, copy->dst, span, &dst)) {
      return Status::kInvalidValue;
    }
  } else {
    if (copy->src == 0) return Status::kInvalidValue;
    copy->bytes.resize(total);
    rows.dst_pitch = copy->size;
    rows.dst_slice = packed_slice;
  }
  Operation& op = NewOperation(Operation::What::kCopy, process, s->device);
  op.copy = std::move(copy);
  op.size = total;
  op.row = op.copy->size;
  op.rows = rows;
  op.src = std::move(src);
  op.dst = std::move(dst);
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

Status MachineImpl::Memset(ProcessId process, StreamId stream, const MemsetRequest& request,
                           Time at, OpId* id) {
  Stream* s = FindStream(process, stream);
  if (s == nullptr) return Status::kInvalidHandle;
  if (queued_[process] >= kMaxQueued) return Status::kOutOfMemory;
  if (request.width != 1 && request.width != 2 && request.width != 4) return Status::kInvalidValue;
  *id = 0;
  const Rows& rows = request.rows;
  if (request.count == 0 || rows.height == 0 || rows.depth == 0) return Status::kSuccess;
  const auto step = static_cast<std::uint64_t>(request.width);
  std::uint64_t row = 0, plane = 0, total = 0, span = 0;
  Place place;
  if (!Product(request.count, step, &row) || !Product(row, rows.height, &plane) ||
      !Product(plane, rows.depth, &total) ||
      !Span(row, rows, rows.dst_pitch, rows.dst_slice, &span) || request.dst % step != 0 ||
      (rows.height > 1 && rows.dst_pitch % step != 0) ||
      (rows.depth > 1 && rows.dst_slice % step != 0) ||
      !Resolve(process, request.dst, span, &place)) {
    return Status::kInvalidValue;
  }
  Operation& op = NewOperation(Operation::What::kMemset, process, s->device);
  op.dst = std::move(place);
  op.size = total;
  op.row = row;
  op.rows = rows;
  op.value = request.value;
  op.width = request.width;
  Enqueue(*s, op, at);
  *id = op.id;
  return Status::kSuccess;
}

int MachineImpl::FreeEngine(const Device& device) {
  return static_cast<int>(std::min_element(device.engines.begin(), device.engines.end()) -
                          device.engines.begin());
}

// One piece of a copy or memset: sent now, applied when it has arrived. The next one follows when
// its engine is free again, not when this one is there.
void MachineImpl::StepCopy(OpId id) {
  Operation& op = operations_.at(id);
  const std::uint64_t piece = std::min(kCopyPiece, op.size - op.sent);
  const int from = op.src.object != nullptr ? op.src.object->device : -1;
  const int to = op.dst.object != nullptr ? op.dst.object->device : -1;
  const bool memset = op.what == Operation::What::kMemset;
  Device& runner = world_.devices[static_cast<std::size_t>(op.device)];
  if (world_.faulty_links && !memset && !world_.CanCopy(from, to)) {
    FailDevice(op.process, op.device, Status::kNvlinkUncorrectable,
               "a copy has met a link that is dead");
    Complete(id, world_.now);
    return;
  }
  const CopyTimes times =
      world_.ChargeCopy(runner, op.engine, memset ? to : from, to, piece, world_.now);
  op.sent += piece;
  if (op.sent < op.size) {
    At(times.sent, [this, id] {
      if (operations_.contains(id)) StepCopy(id);
    });
  }
  At(times.arrived, [this, id, piece] {
    const auto it = operations_.find(id);
    if (it == operations_.end()) return;
    ApplyCopy(it->second, piece);
    if (it->second.done < it->second.size) return;
    world_.stats.copies[it->second.record].end = world_.now;
    Complete(id, world_.now);
  });
}

// Moves the next `piece` bytes, row by row.
void MachineImpl::ApplyCopy(Operation& op, std::uint64_t piece) {
  const std::uint64_t end = op.done + piece;
  while (op.done < end) {
    const std::uint64_t row = op.done / op.row, column = op.done % op.row;
    const std::uint64_t plane = row / op.rows.height, line = row % op.rows.height;
    const std::uint64_t part = std::min(op.row - column, end - op.done);
    const std::uint64_t to = plane * op.rows.dst_slice + line * op.rows.dst_pitch + column;
    const std::uint64_t from = plane * op.rows.src_slice + line * op.rows.src_pitch + column;
    std::byte* dst =
        op.dst.object != nullptr ? op.dst.object->data + op.dst.offset : op.copy->bytes.data();
    if (op.what == Operation::What::kMemset) {
      for (std::uint64_t i = 0; i < part; i += static_cast<std::uint64_t>(op.width)) {
        std::memcpy(dst + to + i, &op.value, static_cast<std::size_t>(op.width));
      }
    } else {
      const std::byte* src =
          op.src.object != nullptr ? op.src.object->data + op.src.offset : op.copy->bytes.data();
      std::memmove(dst + to, src + from, part);
    }
    if (op.dst.object != nullptr && !op.dst.object->watches.empty()) {
      world_.NotifyWrite(*op.dst.object, op.dst.offset + to, part, world_.now, world_.now);
    }
    op.done += part;
  }
  if (op.dst.object != nullptr) {
    world_.last_change = world_.now;
    world_.timer_wakes = 0;
  }
}

}  // namespace allranks::node

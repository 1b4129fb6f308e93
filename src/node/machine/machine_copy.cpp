// Copies and memsets, of one row or of many: the checks before they are queued, and the pieces in
// which they then happen.
#include <algorithm>
#include <cstring>

#include "node/check/errors.h"
#include "node/machine/machine_impl.h"

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

bool MachineImpl::Resolve(ProcessId process, int device, Address address, std::uint64_t size,
                          bool write, Place* place) const {
  // Copies between devices need no peer access: each end may be left to its own device. Constant
  // memory is read-only for kernels alone.
  const auto check = [&](const Mapping& mapping) {
    if (mapping.rights == Mapping::Rights::kPeers) return RangeError::Reason::kNone;
    const DeviceSet& allowed = write ? mapping.writers : mapping.readers;
    const int home = mapping.object->device;
    return allowed[static_cast<std::size_t>(device)] ||
                   (home >= 0 && allowed[static_cast<std::size_t>(home)])
               ? RangeError::Reason::kNone
               : RangeError::Reason::kNoAccess;
  };
  const AddressTable& table = sim_.ProcessOf(process).table;
  return FindRange(table, address, size, write, place, check).reason == RangeError::Reason::kNone;
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
        !Resolve(process, s->device, copy->src, span, false, &src)) {
      return Status::kInvalidValue;
    }
  } else {
    if (copy->bytes.size() < total) return Status::kInvalidValue;
    rows.src_pitch = copy->size;
    rows.src_slice = packed_slice;
  }
  if (copy->dst != 0) {
    if (!Span(copy->size, rows, rows.dst_pitch, rows.dst_slice, &span) ||
        !Resolve(process, s->device, copy->dst, span, true, &dst)) {
      return Status::kInvalidValue;
    }
  } else {
    if (copy->src == 0) return Status::kInvalidValue;
    copy->bytes.resize(total);
    rows.dst_pitch = copy->size;
    rows.dst_slice = packed_slice;
  }
  Operation& op = NewOperation(Operation::Kind::kCopy, process, s->device);
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
      !Resolve(process, s->device, request.dst, span, true, &place)) {
    return Status::kInvalidValue;
  }
  Operation& op = NewOperation(Operation::Kind::kMemset, process, s->device);
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

namespace {

// Where byte `done` of a region is, counted from its first.
std::uint64_t OffsetOf(const Operation& op, std::uint64_t pitch, std::uint64_t slice,
                       std::uint64_t done) {
  const std::uint64_t row = done / op.row, column = done % op.row;
  return row / op.rows.height * slice + row % op.rows.height * pitch + column;
}

// The device of the byte at `at`, -1: the host; `room` becomes at most what is left of that memory.
// A multicast object's is one of its team's that is not `other`.
int DeviceAt(const Place& place, std::uint64_t at, int other, std::uint64_t* room) {
  if (place.object == nullptr) return -1;
  if (place.parts == nullptr) return place.object->device;
  int device = -1;
  for (const Place::Part& part : *place.parts) {
    if (at - part.at >= part.size || (device >= 0 && device != other)) continue;
    *room = std::min(*room, part.at + part.size - at);
    device = part.object->device;
  }
  return device;
}

}  // namespace

namespace {

// Bytes that nobody has written stay such when they are copied.
void CarryInitialised(const Operation& op, std::uint64_t from, Object& to, std::uint64_t offset,
                      std::uint64_t size) {
  if (op.src.object == nullptr) return check::Errors::OnWrite(to, offset, size);
  op.src.Slice(from, size)
      .ForParts(size, [&](const Object& source, std::uint64_t place, std::uint64_t at,
                          std::uint64_t bytes) {
        check::Errors::OnCopyTo(to, offset + at, bytes,
                                check::Errors::OnCopyFrom(source, place, bytes));
      });
}

}  // namespace

// One piece of a copy or memset: sent now, applied when it has arrived. The next one follows when
// its engine is free again, not when this one is there.
void MachineImpl::StepCopy(OpId id) {
  Operation& op = operations_.at(id);
  const bool memset = op.kind == Operation::Kind::kMemset;
  std::uint64_t piece = std::min(kCopyPiece, op.size - op.sent);
  const std::uint64_t at_src = OffsetOf(op, op.rows.src_pitch, op.rows.src_slice, op.sent);
  const std::uint64_t at_dst = OffsetOf(op, op.rows.dst_pitch, op.rows.dst_slice, op.sent);
  const int source = memset ? -1 : DeviceAt(op.src, at_src, -1, &piece);
  const int to = DeviceAt(op.dst, at_dst, source, &piece);
  const int from = memset ? to : source;
  Device& runner = sim_.devices[static_cast<std::size_t>(op.device)];
  if (sim_.timing.faulty_links && !memset && !sim_.timing.CanCopy(from, to)) {
    FailDevice(op.process, op.device, Status::kNvlinkUncorrectable, "a copy uses a dead link");
    Complete(id, sim_.now);
    return;
  }
  const CopyTimes times = sim_.timing.ChargeCopy(runner, op.engine, from, to, piece, sim_.now);
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
    sim_.stats.copies[it->second.record].end = sim_.now;
    Complete(id, sim_.now);
  });
}

// Moves the next `piece` bytes, row by row.
void MachineImpl::ApplyCopy(Operation& op, std::uint64_t piece) {
  const std::uint64_t end = op.done + piece;
  while (op.done < end) {
    const std::uint64_t part = std::min(op.row - op.done % op.row, end - op.done);
    const std::uint64_t to = OffsetOf(op, op.rows.dst_pitch, op.rows.dst_slice, op.done);
    const std::uint64_t from = OffsetOf(op, op.rows.src_pitch, op.rows.src_slice, op.done);
    // Bytes at one place; what does not lie in one piece is taken over whole.
    const std::byte* src = nullptr;
    if (op.kind == Operation::Kind::kMemset) {
    } else if (op.src.object == nullptr) {
      src = op.copy->bytes.data() + from;
    } else if (op.src.parts == nullptr) {
      src = op.src.data() + from;
    } else {
      copy_buffer_.resize(part);
      op.src.Slice(from, part).Read(copy_buffer_.data(), part);
      src = copy_buffer_.data();
    }
    if (sim_.checker != nullptr && op.src.object != nullptr) {
      op.src.Slice(from, part)
          .ForParts(part,
                    [&](Object& object, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
                      checker_->Direct(&op.clocks, object, offset, bytes, false);
                    });
    }
    if (op.dst.object == nullptr) {
      std::memmove(op.copy->bytes.data() + to, src, part);
    } else {
      op.dst.Slice(to, part).ForParts(part, [&](Object& object, std::uint64_t offset,
                                                std::uint64_t at, std::uint64_t bytes) {
        if (sim_.checker != nullptr) checker_->Direct(&op.clocks, object, offset, bytes, true);
        if (src != nullptr) {
          std::memmove(object.data + offset, src + at, bytes);
          if (object.initialised != nullptr) CarryInitialised(op, from + at, object, offset, bytes);
        } else {
          for (std::uint64_t i = 0; i < bytes; i += static_cast<std::uint64_t>(op.width))
            std::memcpy(object.data + offset + i, &op.value, static_cast<std::size_t>(op.width));
          check::Errors::OnWrite(object, offset, bytes);
        }
        if (!object.watches.empty())
          sim_.waiting.NotifyWrite(object, offset, bytes, sim_.now, sim_.now, op.id);
      });
    }
    op.done += part;
  }
  if (op.dst.object != nullptr) {
    sim_.last_change = sim_.now;
    sim_.timer_wakes = 0;
  }
}

}  // namespace allranks::node

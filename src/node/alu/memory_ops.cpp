// Loads and stores on bytes; see memory_ops.h.
#include "node/alu/memory_ops.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "node/code/lanes.h"

namespace allranks::node {
namespace {

using ptx::Type;

bool IsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

std::uint64_t Extend(const MemoryOp& op, std::uint64_t raw) {
  if (IsSigned(op.type) && op.bytes < 8) {
    const int shift = 64 - op.bytes * 8;
    raw = static_cast<std::uint64_t>(static_cast<std::int64_t>(raw << shift) >> shift);
  }
  return op.register_bytes == 2 ? raw & 0xffff : raw;
}

void LoadElement(const MemoryOp& op, std::byte* registers, Slot d, int lane,
                 const std::byte* value) {
  if (op.bytes == 16) {
    std::memcpy(registers + d * kSlotBytes + lane * 8, value, 8);
    std::memcpy(registers + (d + 2) * kSlotBytes + lane * 8, value + 8, 8);
    return;
  }
  std::uint64_t raw = 0;
  std::memcpy(&raw, value, op.bytes);
  raw = Extend(op, raw);
  if (op.register_bytes == 8) {
    std::memcpy(registers + d * kSlotBytes + lane * 8, &raw, 8);
  } else {
    const auto narrow = static_cast<std::uint32_t>(raw);
    std::memcpy(registers + d * kSlotBytes + lane * 4, &narrow, 4);
  }
}

// One behind the other, element width equal to register width: a transposition of T[32][count].
template <class T, int kCount>
void LoadDense(const MemoryOp& op, std::byte* registers, const std::byte* from) {
  const auto* s = reinterpret_cast<const T*>(from);
  for (int e = 0; e < kCount; ++e) {
    if (op.data[e] == kNoSlot) continue;
    auto* d = reinterpret_cast<T*>(registers + op.data[e] * kSlotBytes);
    for (int l = 0; l < kLanes; ++l) d[l] = s[l * kCount + e];
  }
}

template <class T, int kCount>
void StoreDense(const MemoryOp& op, const std::byte* registers, const std::byte* constants,
                std::byte* to) {
  auto* d = reinterpret_cast<T*>(to);
  for (int e = 0; e < kCount; ++e) {
    const auto* s = reinterpret_cast<const T*>(SlotAt(registers, constants, op.data[e]));
    for (int l = 0; l < kLanes; ++l) d[l * kCount + e] = s[l];
  }
}

// Each lane from its own place; element width equal to register width.
template <class T>
void LoadScattered(const MemoryOp& op, std::byte* registers, std::uint32_t lanes,
                   const std::byte* base, const std::uint64_t* offset) {
  for (int e = 0; e < op.count; ++e) {
    if (op.data[e] == kNoSlot) continue;
    auto* d = reinterpret_cast<T*>(registers + op.data[e] * kSlotBytes);
    const std::byte* from = base + static_cast<std::size_t>(e) * sizeof(T);
    ForLanes(lanes, [&](int l) { std::memcpy(&d[l], from + offset[l], sizeof(T)); });
  }
}

// Lane by lane, as the order of lanes that write to one place decides what stays there.
template <class T>
bool StoreScattered(const MemoryOp& op, const std::byte* registers, const std::byte* constants,
                    std::uint32_t lanes, std::byte* base, const std::uint64_t* offset) {
  const T* from[std::extent_v<decltype(op.data)>];
  for (int e = 0; e < op.count; ++e) {
    from[e] = op.data[e] == kNoSlot
                  ? nullptr
                  : reinterpret_cast<const T*>(SlotAt(registers, constants, op.data[e]));
  }
  T differs = 0;
  ForLanes(lanes, [&](int l) {
    std::byte* to = base + offset[l];
    for (int e = 0; e < op.count; ++e, to += sizeof(T)) {
      if (from[e] == nullptr) continue;
      T old;
      std::memcpy(&old, to, sizeof(T));
      differs |= old ^ from[e][l];
      std::memcpy(to, &from[e][l], sizeof(T));
    }
  });
  return differs != 0;
}

// All lanes from one place: pointers out of a kernel's parameters, mostly.
template <class T>
void LoadUniform(const MemoryOp& op, std::byte* registers, const std::byte* from) {
  for (int e = 0; e < op.count; ++e) {
    if (op.data[e] == kNoSlot) continue;
    T value;
    std::memcpy(&value, from + static_cast<std::size_t>(e) * sizeof(T), sizeof(T));
    std::fill_n(reinterpret_cast<T*>(registers + op.data[e] * kSlotBytes), kLanes, value);
  }
}

bool IsUniform(const std::uint64_t* offset) {
  std::uint64_t differs = 0;
  for (int l = 1; l < kLanes; ++l) differs |= offset[l] ^ offset[0];
  return differs == 0;
}

}  // namespace

void LoadLane(const MemoryOp& op, std::byte* registers, int lane, const std::byte* value) {
  for (int e = 0; e < op.count; ++e) {
    if (op.data[e] != kNoSlot) LoadElement(op, registers, op.data[e], lane, value + e * op.bytes);
  }
}

void LoadLanes(const MemoryOp& op, std::byte* registers, std::uint32_t lanes, const std::byte* base,
               const std::uint64_t* offset, bool dense) {
  if (dense && op.bytes == 4 && op.register_bytes == 4) {
    const std::byte* from = base + offset[0];
    switch (op.count) {
      case 1:
        LoadDense<std::uint32_t, 1>(op, registers, from);
        return;
      case 2:
        LoadDense<std::uint32_t, 2>(op, registers, from);
        return;
      case 4:
        LoadDense<std::uint32_t, 4>(op, registers, from);
        return;
      default:
        break;
    }
  }
  if (dense && op.bytes == 8 && op.register_bytes == 8) {
    const std::byte* from = base + offset[0];
    switch (op.count) {
      case 1:
        LoadDense<std::uint64_t, 1>(op, registers, from);
        return;
      case 2:
        LoadDense<std::uint64_t, 2>(op, registers, from);
        return;
      default:
        break;
    }
  }
  if (op.bytes == op.register_bytes && (op.bytes == 4 || op.bytes == 8)) {
    if (lanes == kAllLanes && IsUniform(offset)) {
      op.bytes == 4 ? LoadUniform<std::uint32_t>(op, registers, base + offset[0])
                    : LoadUniform<std::uint64_t>(op, registers, base + offset[0]);
    } else {
      op.bytes == 4 ? LoadScattered<std::uint32_t>(op, registers, lanes, base, offset)
                    : LoadScattered<std::uint64_t>(op, registers, lanes, base, offset);
    }
    return;
  }
  ForLanes(lanes, [&](int l) { LoadLane(op, registers, l, base + offset[l]); });
}

bool StoreLanes(const MemoryOp& op, const std::byte* registers, const std::byte* constants,
                std::uint32_t lanes, std::byte* base, const std::uint64_t* offset, bool dense,
                bool look) {
  if (dense && !look && op.register_bytes == op.bytes) {
    std::byte* to = base + offset[0];
    if (op.bytes == 4 && op.count == 1)
      return StoreDense<std::uint32_t, 1>(op, registers, constants, to), true;
    if (op.bytes == 4 && op.count == 2)
      return StoreDense<std::uint32_t, 2>(op, registers, constants, to), true;
    if (op.bytes == 4 && op.count == 4)
      return StoreDense<std::uint32_t, 4>(op, registers, constants, to), true;
    if (op.bytes == 8 && op.count == 1)
      return StoreDense<std::uint64_t, 1>(op, registers, constants, to), true;
    if (op.bytes == 8 && op.count == 2)
      return StoreDense<std::uint64_t, 2>(op, registers, constants, to), true;
  }
  if (op.register_bytes == op.bytes && (op.bytes == 4 || op.bytes == 8)) {
    const bool differs =
        op.bytes == 4
            ? StoreScattered<std::uint32_t>(op, registers, constants, lanes, base, offset)
            : StoreScattered<std::uint64_t>(op, registers, constants, lanes, base, offset);
    return differs || !look;
  }
  bool changed = !look;
  ForLanes(lanes, [&](int l) {
    std::byte* to = base + offset[l];
    for (int e = 0; e < op.count; ++e, to += op.bytes) {
      if (op.data[e] == kNoSlot) continue;
      const std::byte* from = SlotAt(registers, constants, op.data[e]);
      std::byte value[16];
      if (op.bytes == 16) {
        std::memcpy(value, from + l * 8, 8);
        std::memcpy(value + 8, from + 2 * kSlotBytes + l * 8, 8);
      } else {
        std::memcpy(value, from + static_cast<std::size_t>(l) * (op.register_bytes == 8 ? 8 : 4),
                    std::min<std::size_t>(op.bytes, 8));
      }
      if (look) changed |= std::memcmp(to, value, op.bytes) != 0;
      std::memcpy(to, value, op.bytes);
    }
  });
  return changed;
}

}  // namespace allranks::node

// What the parts of asynchronous operations share: lanes' operands, and addresses → bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "node/lanes.h"
#include "node/memory.h"
#include "node/world.h"

namespace allranks::node {

// A lane's element of a slot; 4 or 8 bytes.
inline std::uint64_t LaneValue(const Path& path, Slot slot, int lane, int bytes) {
  const std::byte* base = SlotAt(RegistersOf(path), path.warp->cta->launch->constants.data(), slot);
  std::uint64_t value = 0;
  std::memcpy(&value, base + lane * bytes, static_cast<std::size_t>(bytes));
  return value;
}

inline void SetLaneValue(const Path& path, Slot slot, int lane, std::uint64_t value, int bytes) {
  if (slot == kNoSlot) return;
  std::memcpy(RegistersOf(path) + slot * kSlotBytes + lane * bytes, &value,
              static_cast<std::size_t>(bytes));
}

inline std::uint64_t LaneAddress(const Path& path, const AsyncAddress& a, int lane) {
  if (a.address == kNoSlot) return static_cast<std::uint64_t>(a.offset);
  if (a.address32) {
    return static_cast<std::uint32_t>(LaneValue(path, a.address, lane, 4) +
                                      static_cast<std::uint64_t>(a.offset));
  }
  return LaneValue(path, a.address, lane, 8) + static_cast<std::uint64_t>(a.offset);
}

// Bytes of the shared memory of a CTA of the cluster.
struct SharedPlace {
  Cta* cta = nullptr;
  std::uint32_t offset = 0;
  std::byte* data() const { return cta->shared.data() + offset; }
};

// Where `size` bytes at a lane's address are; false: the path has faulted.
// `own`: only the executing CTA's own shared memory will do.
bool ResolveShared(World& world, const Path& path, const AsyncAddress& a, int lane,
                   std::uint64_t size, std::uint64_t align, bool own, SharedPlace* place);
bool ResolveGlobal(World& world, const Path& path, const AsyncAddress& a, int lane,
                   std::uint64_t size, std::uint64_t align, bool write, Place* place);

bool ResolveGlobalAt(World& world, const Path& path, Address address, int lane, std::uint64_t size,
                     std::uint64_t align, bool write, Place* place);

// The CTA with that number still runs: what was planned for it may be done.
inline bool StillThere(const Cta* cta, std::uint64_t number) {
  return cta->number == number && cta->live_threads != 0;
}

void FaultWith(World& world, const Path& path, const std::string& what, int lane);
// For what goes wrong at completion; `pc` is the instruction that began it.
void FaultLater(World& world, const Cta& cta, std::uint32_t pc, const std::string& what);

}  // namespace allranks::node

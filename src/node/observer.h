// Observers see every memory access, synchronisation and lifetime event of the engine, one call per
// warp access, and may choose what a strong load returns. They are a template parameter of the
// engine: kNone costs nothing, because nothing is compiled in.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <unordered_map>
#include <vector>

#include "node/code.h"
#include "node/memory.h"
#include "node/world.h"

namespace allranks::node {

inline constexpr std::uint32_t kMaxKept = 32;  // bytes of the widest vector access

// One warp-wide access. For global memory `object` is set and offset[] counts from its start; for
// shared and local memory it is null and offset[] is the window offset.
struct Access {
  const Path* path = nullptr;
  const MemoryOp* op = nullptr;
  Object* object = nullptr;
  std::uint32_t lanes = 0;                // lanes of this access that are in `object`
  const std::uint64_t* offset = nullptr;  // [kLanes]
  std::uint32_t bytes = 0;                // per lane, all elements
  bool dense = false;                     // by all lanes, one behind the other
  Time time = 0;
};

// Tells World::checker, which sees everything that an observer could and more (check/checker.h).
struct CheckObserver {
  static constexpr bool kActive = false;
  static constexpr bool kChooses = false;
  static constexpr bool kChecks = true;
};

// The default: sees nothing.
struct NoObserver {
  static constexpr bool kActive = false;
  static constexpr bool kChooses = false;
  static constexpr bool kChecks = false;
};

// Counts accesses and bytes.
class CountingObserver {
 public:
  static constexpr bool kActive = true;
  static constexpr bool kChooses = false;
  static constexpr bool kChecks = false;
  void OnAccess(const Access& access) {
    ++accesses;
    bytes += static_cast<std::uint64_t>(__builtin_popcount(access.lanes)) * access.bytes;
  }
  void OnFence(const Path&, const MemoryOp&) { ++synchronisations; }
  void OnBarrier(const Path&) { ++synchronisations; }
  void OnKernel(const Launch&, bool /*begins*/) { ++lifetimes; }
  std::uint64_t accesses = 0, bytes = 0, synchronisations = 0, lifetimes = 0;
};

// Lets each strong load of a CTA return the value before the newest write of another CTA for the
// first `kReluctance` times it could see that write. Permitted, because it does so only while
// nothing orders the load after the write: after an acquire that got the newest value, a fence, a
// barrier or the end of a kernel, everything written before counts as seen. Exists to test that the
// engine keeps what an observer chooses, and that protocols which retry survive it.
class StaleObserver {
 public:
  static constexpr bool kActive = true;
  static constexpr bool kChooses = true;
  static constexpr bool kChecks = false;
  static constexpr int kReluctance = 3;

  void OnAccess(const Access& access) {
    ++accesses;
    bytes += static_cast<std::uint64_t>(__builtin_popcount(access.lanes)) * access.bytes;
  }
  void OnFence(const Path& path, const MemoryOp&) { OnAcquire(path.warp->cta->number); }
  void OnBarrier(const Path& path) { OnAcquire(path.warp->cta->number); }
  void OnKernel(const Launch&, bool begins) {
    if (!begins) histories_.clear();
  }
  void OnAcquire(std::uint64_t reader) { horizon_[reader] = writes_; }

  // A strong write of `size` bytes (at most 16) is about to replace `old`.
  void OnStrongWrite(const Object& object, std::uint64_t offset, std::uint32_t size,
                     const std::byte* old, std::uint64_t writer) {
    if (histories_.size() >= kMaxHistories) histories_.clear();
    History& history = histories_[{object.id, offset}];
    history.number = ++writes_;
    history.size = size;
    history.writer = writer;
    std::memcpy(history.old, old, size);
    history.seen.clear();
  }
  // May replace the value a strong load of `reader` is about to return. True if it did.
  bool Choose(const Object& object, std::uint64_t offset, std::uint32_t size, std::byte* value,
              std::uint64_t reader) {
    const auto it = histories_.find({object.id, offset});
    if (it == histories_.end() || it->second.size != size || it->second.writer == reader)
      return false;
    const auto horizon = horizon_.find(reader);
    if (horizon != horizon_.end() && it->second.number <= horizon->second) return false;
    int& seen = it->second.seen[reader];
    if (seen >= kReluctance) return false;
    ++seen;
    ++chosen;
    std::memcpy(value, it->second.old, size);
    return true;
  }
  std::uint64_t accesses = 0, bytes = 0, chosen = 0;

 private:
  struct History {
    std::byte old[16];
    std::uint32_t size = 0;
    std::uint64_t writer = 0;
    std::uint64_t number = 0;           // of the write, counted over all
    std::map<std::uint64_t, int> seen;  // by reading CTA
  };
  static constexpr std::size_t kMaxHistories = 1 << 16;
  std::uint64_t writes_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> horizon_;  // by CTA: writes it must see
  std::map<std::pair<std::uint32_t, std::uint64_t>, History> histories_;
};

}  // namespace allranks::node

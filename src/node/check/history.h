// Strong writes to a line, newest last: what strong loads may still return, and what they learn
// from it. Each write keeps the bytes it has replaced, so the value before it is got by undoing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "node/check/clock.h"
#include "node/code/code.h"
#include "node/time.h"

namespace allranks::node::check {

// Where a thread is, as scopes see it.
struct Position {
  int device = -1;  // -1: a host
  std::uint64_t cluster = 0;
  Agent cta = 0;  // 0: several of the device, or none
  // Host code whose accesses are seen, but not by which order.
  bool native = false;

  // The narrowest scope that has both.
  Scope Common(const Position& other) const {
    if (cta != 0 && cta == other.cta) return Scope::kCta;
    if (cluster != 0 && cluster == other.cluster) return Scope::kCluster;
    return device >= 0 && device == other.device ? Scope::kGpu : Scope::kSys;
  }
};

// What has passed a fence to the asynchronous proxy, by state space; null: nothing.
struct Proxied {
  ClockRef global, shared;
  bool operator==(const Proxied&) const = default;
};
inline Proxied Join(const Joins& join, const Proxied& a, const Proxied& b) {
  return {join(a.global, b.global), join(a.shared, b.shared)};
}

// What fence.sc of system scope orders beyond releases. `fenced`: what those say that are before.
// `read`: what those say that were before a strong write which was read; the next fence.sc learns
// it.
struct ScOrder {
  ClockRef fenced, read;
  bool operator==(const ScOrder&) const = default;
};
inline ScOrder Join(const Joins& join, const ScOrder& a, const ScOrder& b) {
  return {join(a.fenced, b.fenced), join(a.read, b.read)};
}

// What a release says: `clock`, and `own` of the CTA that released, is known to whoever acquires
// it, if the release's scope has him and the acquire's scope has the one who released. Lanes that
// release together say the same clock, each beside its own.
struct Part {
  Scope scope = Scope::kSys;
  Position from;
  ClockRef clock;
  ClockRef seen;    // what more he must see in strong locations (order of fence.sc); may be null
  Proxied proxied;  // of it
  Agent agent = 0;  // whose `own` is; 0: several have released, and all is in `clock`
  KnownRef own = nullptr;
  ScOrder sc = {};

  ClockRef Whole() const { return own != nullptr ? Plus(clock, agent, own) : clock; }
};
using Message = std::vector<Part>;

// `into` says what `part` says, too.
void Absorb(const Joins& join, Part& into, const Part& part);
// Releases of one scope by one CTA become one, and those of one device if they get many.
void Merge(const Joins& join, Message& message, const Part& part);

// A thread at a moment.
struct Stamp {
  Agent agent = 0;
  Tick tick = 0;
  std::uint16_t warp = 0;
  std::uint8_t lane = 0;
};

struct StrongWrite {
  std::uint64_t number = 0;  // of its instruction, counted over all
  std::uint8_t first = 0, size = 0;
  bool vector = false, atomic = false;
  bool base = false;  // one before it has been forgotten, so this is the oldest that may be read
  std::uint8_t element = 4;  // bytes
  Scope scope = Scope::kGpu;
  std::byte old[32] = {};
  std::byte now[8] = {};  // the first bytes that it wrote
  Stamp by;
  Position from;
  std::uint32_t pc = 0;
  Time visible = kTimeNever;
  Message message, own;  // own: what its thread has said itself
  ClockRef fenced;       // what fence.sc before it say; of an update also those before what it read
  // Who has read it: lanes of a warp, at their first time. Each element is an access of its own.
  struct Reader {
    Agent agent = 0;
    Tick tick = 0;
    std::uint16_t warp = 0;
    std::uint8_t elements = 1;
    std::uint32_t lanes = 0;
  };
  std::vector<Reader> readers;
  bool read_by_many = false;  // more than are remembered
  void Read(const Stamp& by, std::uint8_t elements);
  // Those that have bytes of the line's bytes begin to end.
  std::uint8_t Elements(std::uint32_t begin, std::uint32_t end) const;
  bool Overlaps(std::uint32_t begin, std::uint32_t end) const {
    return first < end && begin < std::uint32_t{first} + size;
  }
};

class History {
 public:
  static constexpr std::size_t kMostOnTheirWay = 64, kDepth = 4;
  static constexpr int kMostStale = 4;

  // A write was not remembered: what a load may return can no longer be told from what is.
  void Lose() { lossy_ = true; }
  bool lossy() const { return lossy_; }
  // `depth`: how many writes of a place that everybody can see are kept.
  StrongWrite& Add(const Joins& join, std::size_t depth, Time now);
  void Close(Time visible);  // of those added since the last call
  // Bytes were written by other means: what was known of them is void.
  void Erase(std::uint32_t begin, std::uint32_t end);
  std::vector<StrongWrite>& writes() { return writes_; }
  // A warp gets something older than the newest only so many times in a row, of each byte `at` that
  // its loads begin with: what it has seen of one place says nothing of the next.
  bool Stubborn(Agent agent, std::uint16_t warp, std::uint32_t at);
  void Yielded(Agent agent, std::uint16_t warp, std::uint32_t at);

 private:
  struct Stale {
    Agent agent = 0;
    std::uint16_t warp = 0;
    std::uint32_t at = 0;
    int times = 0;
    bool Is(Agent whose, std::uint16_t of, std::uint32_t place) const {
      return agent == whose && warp == of && at == place;
    }
  };
  std::vector<StrongWrite> writes_;
  bool lossy_ = false;
  std::vector<Stale> stale_;
};

}  // namespace allranks::node::check

// The hooks that g++ plants into host code with -fsanitize=thread (a call before each access) and
// -fsanitize-coverage=trace-pc (a call per basic block); no library of a sanitizer is linked.
//
// Theory of operation. Native code takes no virtual time; for host code that is part of what is
// measured that will not do. So blocks are counted, and an access to memory that devices see first
// sends the node what they have cost since the last one. The node answers when that time has passed
// and what is to be read has arrived; then the access is made natively, while time stands still. A
// thread that reads the same few places over and over, with the same values and no store in
// between, waits: it lets the node answer when one of them changes. It may also count its rounds,
// so an answer comes after an eighth of the time waited so far at the latest.
//
// The costs are estimates: about three instructions of a basic block in a nanosecond, and a line of
// uncached host memory that a device has written in 20.
#include "shim/driver/instrumented.h"

#include <string.h>

#include <algorithm>
#include <cstddef>

#include "shim/abi.h"

namespace allranks::shim {
namespace {

constexpr std::int64_t kBlockPs = 1'000;
constexpr std::int64_t kLinePs = 20'000;
constexpr std::uint64_t kLine = 64;
constexpr int kMaxRanges = 256;
constexpr int kPlaces = 24;  // that a loop may look at
constexpr int kRounds = 32;  // equal reads before it counts as waiting
constexpr std::int64_t kLongestWaitPs = 10'000'000'000;

struct Range {
  std::uint64_t begin, end;
};
Range g_ranges[kMaxRanges];
int g_range_count = 0;
std::uint64_t g_low = ~std::uint64_t{0}, g_high = 0;

struct Place {
  std::uint64_t address, seen;
  std::uint32_t size;
};
struct ThreadState {
  bool active;
  std::int64_t blocks;
  Place places[kPlaces];
  int count, equal;
  std::int64_t waited;
};
constinit thread_local ThreadState t_state{};

bool Watched(std::uint64_t begin, std::uint64_t size) {
  if (begin >= g_high || begin + size <= g_low) return false;
  for (int i = 0; i < g_range_count; ++i)
    if (begin < g_ranges[i].end && begin + size > g_ranges[i].begin) return true;
  return false;
}

std::uint64_t ValueAt(std::uint64_t address, std::uint32_t size) {
  std::uint64_t value = 0;
  memcpy(&value, reinterpret_cast<const void*>(address), size);
  return value;
}

void Forget(ThreadState& state) {
  state.count = state.equal = 0;
  state.waited = 0;
}

// After the answer, before the program's own read: it will see the same.
void Remember(ThreadState& state, std::uint64_t address, std::uint32_t size) {
  const std::uint64_t seen = ValueAt(address, size);
  for (int i = 0; i < state.count; ++i) {
    Place& place = state.places[i];
    if (place.address != address || place.size != size) continue;
    if (place.seen == seen) {
      ++state.equal;
      return;
    }
    Forget(state);
    break;
  }
  if (state.count == kPlaces) Forget(state);
  state.places[state.count++] = {address, seen, size};
  state.equal = 0;
}

// As node::Checking::HostOrder has them.
enum Order : std::uint8_t { kPlain, kRelaxed, kAcquire, kRelease, kBoth };

Order OrderOf(int order) {
  switch (order) {
    case __ATOMIC_RELAXED:
      return kRelaxed;
    case __ATOMIC_CONSUME:
    case __ATOMIC_ACQUIRE:
      return kAcquire;
    case __ATOMIC_RELEASE:
      return kRelease;
    default:
      return kBoth;
  }
}

// A store reads nothing that it could acquire.
Order StoreOrderOf(int order) {
  const Order of = OrderOf(order);
  return of == kBoth ? kRelease : of;
}

void Step(ThreadState& state, std::uint64_t address, std::uint64_t size, bool writes,
          Order order = kPlain) {
  state.active = false;  // the call itself is not the candidate's
  wire::JudgeHostStep step;
  const std::uint64_t lines = size == 0 ? 0 : (address + size - 1) / kLine - address / kLine + 1;
  step.cost_ps = state.blocks * kBlockPs + static_cast<std::int64_t>(lines) * kLinePs;
  step.address = address;
  step.size = size;
  step.writes = writes;
  step.order = order;
  state.blocks = 0;
  const bool waits = !writes && state.count > 0 && state.equal >= kRounds + 2 * state.count;
  if (waits) {
    for (int i = 0; i < state.count; ++i) {
      wire::HostPoll::Watch& watch = step.watches.emplace_back();
      watch.address = state.places[i].address;
      watch.size = state.places[i].size;
      watch.seen = state.places[i].seen;
    }
    step.timeout_ps = std::clamp(state.waited / 8, step.cost_ps, kLongestWaitPs);
  }
  Call(step);
  state.waited += waits ? step.timeout_ps : step.cost_ps;
  // Larger reads are no polls.
  if (writes || size > 8) {
    Forget(state);
  } else if (size != 0) {
    Remember(state, address, static_cast<std::uint32_t>(size));
  }
  state.active = true;
}

inline void Touch(const volatile void* memory, std::uint64_t size, bool writes,
                  Order order = kPlain) {
  ThreadState& state = t_state;
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  if (state.active && Watched(address, size)) Step(state, address, size, writes, order);
}

// Copies that no hook is called for.
void Move(void* to, const void* from, std::size_t size) {
  auto* d = static_cast<unsigned char*>(to);
  const auto* s = static_cast<const unsigned char*>(from);
  if (reinterpret_cast<std::uintptr_t>(d) - reinterpret_cast<std::uintptr_t>(s) >= size) {
    asm volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(size) : : "memory");
    return;
  }
  while (size-- != 0) {
    d[size] = s[size];
    asm volatile("" : : : "memory");  // a loop that stays one
  }
}

}  // namespace

void WatchPinned(const void* memory, std::uint64_t size) {
  if (g_range_count == kMaxRanges) return;
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  g_ranges[g_range_count++] = {begin, begin + size};
  g_low = std::min(g_low, begin);
  g_high = std::max(g_high, begin + size);
}

void BeginInstrumented() {
  t_state = {};
  t_state.active = true;
}

void EndInstrumented() {
  if (t_state.blocks != 0) Step(t_state, 0, 0, false);
  t_state.active = false;
}

}  // namespace allranks::shim

using allranks::shim::OrderOf;
using allranks::shim::StoreOrderOf;
using allranks::shim::t_state;
using allranks::shim::Touch;

extern "C" {

void __sanitizer_cov_trace_pc() { ++t_state.blocks; }

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* memory, std::size_t size) { Touch(memory, size, false); }
void __tsan_write_range(void* memory, std::size_t size) { Touch(memory, size, true); }

#define ALLRANKS_ACCESS(bytes)                                                     \
  void __tsan_read##bytes(void* memory) { Touch(memory, bytes, false); }           \
  void __tsan_write##bytes(void* memory) { Touch(memory, bytes, true); }           \
  void __tsan_volatile_read##bytes(void* memory) {                                 \
    Touch(memory, bytes, false, allranks::shim::kRelaxed);                         \
  }                                                                                \
  void __tsan_volatile_write##bytes(void* memory) {                                \
    Touch(memory, bytes, true, allranks::shim::kRelaxed);                          \
  }                                                                                \
  void __tsan_unaligned_read##bytes(void* memory) { Touch(memory, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* memory) { Touch(memory, bytes, true); }
ALLRANKS_ACCESS(1)
ALLRANKS_ACCESS(2)
ALLRANKS_ACCESS(4)
ALLRANKS_ACCESS(8)
ALLRANKS_ACCESS(16)
#undef ALLRANKS_ACCESS

// With the strongest order: at most it costs what it would not have.
#define ALLRANKS_RMW(bits, type, name)                                              \
  type __tsan_atomic##bits##_##name(volatile type* memory, type value, int order) { \
    Touch(memory, sizeof(type), true, OrderOf(order));                              \
    return __atomic_##name(memory, value, __ATOMIC_SEQ_CST);                        \
  }
#define ALLRANKS_ATOMIC(bits, type)                                                        \
  type __tsan_atomic##bits##_load(const volatile type* memory, int order) {                \
    Touch(memory, sizeof(type), false, OrderOf(order));                                    \
    return __atomic_load_n(memory, __ATOMIC_SEQ_CST);                                      \
  }                                                                                        \
  void __tsan_atomic##bits##_store(volatile type* memory, type value, int order) {         \
    Touch(memory, sizeof(type), true, StoreOrderOf(order));                                \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                                     \
  }                                                                                        \
  type __tsan_atomic##bits##_exchange(volatile type* memory, type value, int order) {      \
    Touch(memory, sizeof(type), true, OrderOf(order));                                     \
    return __atomic_exchange_n(memory, value, __ATOMIC_SEQ_CST);                           \
  }                                                                                        \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* memory, type* expected, \
                                                    type desired, int order, int) {        \
    Touch(memory, sizeof(type), true, OrderOf(order));                                     \
    return __atomic_compare_exchange_n(memory, expected, desired, false, __ATOMIC_SEQ_CST, \
                                       __ATOMIC_SEQ_CST);                                  \
  }                                                                                        \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* memory, type* expected,   \
                                                  type desired, int order, int) {          \
    Touch(memory, sizeof(type), true, OrderOf(order));                                     \
    return __atomic_compare_exchange_n(memory, expected, desired, false, __ATOMIC_SEQ_CST, \
                                       __ATOMIC_SEQ_CST);                                  \
  }                                                                                        \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* memory, type expected,    \
                                                  type desired, int order, int) {          \
    Touch(memory, sizeof(type), true, OrderOf(order));                                     \
    __atomic_compare_exchange_n(memory, &expected, desired, false, __ATOMIC_SEQ_CST,       \
                                __ATOMIC_SEQ_CST);                                         \
    return expected;                                                                       \
  }                                                                                        \
  ALLRANKS_RMW(bits, type, fetch_add)                                                      \
  ALLRANKS_RMW(bits, type, fetch_sub)                                                      \
  ALLRANKS_RMW(bits, type, fetch_and)                                                      \
  ALLRANKS_RMW(bits, type, fetch_or)                                                       \
  ALLRANKS_RMW(bits, type, fetch_xor)                                                      \
  ALLRANKS_RMW(bits, type, fetch_nand)
ALLRANKS_ATOMIC(8, std::uint8_t)
ALLRANKS_ATOMIC(16, std::uint16_t)
ALLRANKS_ATOMIC(32, std::uint32_t)
ALLRANKS_ATOMIC(64, std::uint64_t)
#undef ALLRANKS_ATOMIC
#undef ALLRANKS_RMW

void __tsan_atomic_thread_fence(int order) {
  if (t_state.active && order != __ATOMIC_RELAXED)
    allranks::shim::Step(t_state, 0, 0, false, OrderOf(order));
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

// By the linker's --wrap: the compiler plants no hooks before these.
void* __wrap_memcpy(void* to, const void* from, std::size_t size) {
  Touch(from, size, false);
  Touch(to, size, true);
  allranks::shim::Move(to, from, size);
  return to;
}
void* __wrap_memmove(void* to, const void* from, std::size_t size) {
  return __wrap_memcpy(to, from, size);
}
void* __wrap_memset(void* to, int value, std::size_t size) {
  Touch(to, size, true);
  void* at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
  return to;
}

}  // extern "C"

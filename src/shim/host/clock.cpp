// Reads of time and sleeps. A thread's time stands still between two messages except for 20 ns at
// each read, so that loops on time end and two reads are never equal; after many reads without a
// message the thread yields, so that the machine's time can pass while a program waits for it.
#include "shim/host/clock.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>

#include "shim/host/link.h"
#include "shim/host/real.h"
#include "wire/raw_syscall.h"

namespace allranks::shim {
namespace {

constexpr std::int64_t kReadCostPs = 20'000;
constexpr std::uint32_t kReadsUntilYield = 1000;

constinit std::atomic<std::int64_t> g_after_node_ns{-1};
constinit std::atomic<std::int64_t> g_real_at_end_ns{0};

std::int64_t RealNs(clockid_t clock) {
  timespec time{};
  wire::RawSyscall(SYS_clock_gettime, clock, reinterpret_cast<long>(&time));
  return ToNs(time);
}

std::int64_t BaseNs(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
      return RealtimeBaseNs();
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return MonotonicBaseNs();
    default:
      return 0;  // CPU time of the process or thread
  }
}

bool IsVirtual(clockid_t clock) { return clock >= 0 && clock <= CLOCK_TAI; }

// True and the time if the calling thread's time is virtual.
bool ReadClock(clockid_t clock, std::int64_t* ns) {
  if (!IsVirtual(clock)) return false;
  Thread* thread = Self();
  if (thread == nullptr) {
    const std::int64_t last = g_after_node_ns.load();
    if (last < 0) return false;
    *ns = BaseNs(clock) + last + RealNs(CLOCK_MONOTONIC) - g_real_at_end_ns.load();
    return true;
  }
  if (++thread->clock_reads > kReadsUntilYield) Call(thread, wire::Yield{});
  *ns = VirtualNowNs(thread, clock);
  thread->local += kReadCostPs;
  return true;
}

timespec ToTimespec(std::int64_t ns) {
  timespec time;
  time.tv_sec = ns / kNsPerSecond;
  time.tv_nsec = ns % kNsPerSecond;
  return time;
}

// True if the sleep was a virtual one.
bool SleepNs(std::int64_t ns) {
  Thread* thread = Self();
  if (thread == nullptr) return false;
  wire::Sleep sleep;
  sleep.ps = ns < 0 ? 0 : ns > INT64_MAX / 2000 ? INT64_MAX / 2 : ns * 1000;
  return Call(thread, sleep) != kNoLink;
}

}  // namespace

std::int64_t VirtualNowNs(const Thread* thread, clockid_t clock) {
  return BaseNs(clock) + (thread->clock + thread->local) / 1000;
}

void ClockGoesOnWithoutNode(std::int64_t last_ps) {
  g_real_at_end_ns.store(RealNs(CLOCK_MONOTONIC));
  g_after_node_ns.store(last_ps / 1000);
}

}  // namespace allranks::shim

namespace shim = allranks::shim;

ALLRANKS_INTERPOSE int clock_gettime(clockid_t clock, timespec* time) {
  std::int64_t ns;
  if (!shim::ReadClock(clock, &ns)) {
    return ALLRANKS_REAL(clock_gettime)(clock, time);
  }
  *time = shim::ToTimespec(ns);
  return 0;
}

ALLRANKS_INTERPOSE int timespec_get(timespec* time, int base) {
  std::int64_t ns;
  if (base != TIME_UTC || !shim::ReadClock(CLOCK_REALTIME, &ns)) {
    return ALLRANKS_REAL(timespec_get)(time, base);
  }
  *time = shim::ToTimespec(ns);
  return base;
}

ALLRANKS_INTERPOSE int gettimeofday(timeval* __restrict time, void* __restrict zone) noexcept {
  std::int64_t ns;
  if (!shim::ReadClock(CLOCK_REALTIME, &ns)) {
    return ALLRANKS_REAL(gettimeofday)(time, zone);
  }
  time->tv_sec = ns / shim::kNsPerSecond;
  time->tv_usec = ns % shim::kNsPerSecond / 1000;
  return 0;
}

ALLRANKS_INTERPOSE time_t time(time_t* result) noexcept {
  std::int64_t ns;
  if (!shim::ReadClock(CLOCK_REALTIME, &ns)) return ALLRANKS_REAL(time)(result);
  const time_t seconds = ns / shim::kNsPerSecond;
  if (result != nullptr) *result = seconds;
  return seconds;
}

ALLRANKS_INTERPOSE clock_t clock() noexcept {
  std::int64_t ns;
  if (!shim::ReadClock(CLOCK_PROCESS_CPUTIME_ID, &ns)) return ALLRANKS_REAL(clock)();
  return ns / 1000;
}

ALLRANKS_INTERPOSE int nanosleep(const timespec* wanted, timespec* left) {
  if (wanted->tv_nsec < 0 || wanted->tv_nsec >= shim::kNsPerSecond || wanted->tv_sec < 0 ||
      !shim::SleepNs(shim::ToNs(*wanted))) {
    return ALLRANKS_REAL(nanosleep)(wanted, left);
  }
  return 0;
}

ALLRANKS_INTERPOSE int clock_nanosleep(clockid_t clock, int flags, const timespec* wanted,
                                       timespec* left) {
  shim::Thread* thread = shim::Self();
  if (thread == nullptr || !shim::IsVirtual(clock) || wanted->tv_nsec < 0 ||
      wanted->tv_nsec >= shim::kNsPerSecond) {
    return ALLRANKS_REAL(clock_nanosleep)(clock, flags, wanted, left);
  }
  std::int64_t ns = shim::ToNs(*wanted);
  if ((flags & TIMER_ABSTIME) != 0) ns -= shim::VirtualNowNs(thread, clock);
  if (!shim::SleepNs(ns)) return ALLRANKS_REAL(clock_nanosleep)(clock, flags, wanted, left);
  return 0;
}

ALLRANKS_INTERPOSE unsigned sleep(unsigned seconds) {
  if (!shim::SleepNs(seconds * shim::kNsPerSecond)) return ALLRANKS_REAL(sleep)(seconds);
  return 0;
}

ALLRANKS_INTERPOSE int usleep(useconds_t microseconds) {
  if (!shim::SleepNs(std::int64_t{microseconds} * 1000)) return ALLRANKS_REAL(usleep)(microseconds);
  return 0;
}

ALLRANKS_INTERPOSE int sched_yield() noexcept {
  shim::Thread* thread = shim::Self();
  if (thread == nullptr || shim::Call(thread, allranks::wire::Yield{}) == shim::kNoLink) {
    return ALLRANKS_REAL(sched_yield)();
  }
  return 0;
}

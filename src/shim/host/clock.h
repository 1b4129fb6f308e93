// The thread's virtual clock, as libc's callers see it.
#pragma once

#include <time.h>

#include <cstdint>

namespace allranks::shim {

struct Thread;

// Nanoseconds on the given clock without counting as a read of it.
std::int64_t VirtualNowNs(const Thread* thread, clockid_t clock);

// The node is gone: from here on the thread's clocks go on from `last_ps` with real time.
void ClockGoesOnWithoutNode(std::int64_t last_ps);

inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;
inline std::int64_t ToNs(const timespec& time) { return time.tv_sec * kNsPerSecond + time.tv_nsec; }

}  // namespace allranks::shim

// Whether a thread that touches pinned memory is spinning on it; pinned.cpp has the theory, and
// calls this from its signal handlers: nothing here may allocate.
#pragma once

#include <ucontext.h>

#include <atomic>
#include <cstdint>

#include "shim/host/link.h"

namespace allranks::shim {

inline constexpr std::uint64_t kPage = 4096;
inline constexpr long kTrapFlag = 0x100;

// How long the helper waits before it closes the pages of silent threads. Grows with every bulk
// access, so that those stay cheap.
extern std::atomic<int> g_patience_ms;

// Where the handlers can read the byte at `address`; 0 if it is not pinned memory.
std::uint64_t Alias(std::uint64_t address);
// What is there; zeros if it is not pinned memory.
void ReadBytes(std::uint64_t address, std::uint32_t size, std::uint64_t out[2]);

// Everything that can make the loop go another way next time: registers, the frame (counters of
// unoptimised code), the clock. `seen` is mixed in by the caller's comparison.
void HashState(const Thread* thread, const greg_t* registers, std::uint64_t hash[2]);
// Whether the thread's loop is to run without faults, because the node doubts that it is stuck.
bool RunsNatively(const Thread* thread);
// Counts the places that the thread has touched in this segment; true if they are too many for a
// spin.
bool IsManyPlaces(Thread* thread, std::uint64_t address);
// The stepped instruction is done: notes it, and if this state has been before tells the node,
// which answers when a byte has changed.
void FinishStep(Thread* thread);

}  // namespace allranks::shim

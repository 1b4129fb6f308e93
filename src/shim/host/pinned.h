// The process's pinned mappings, and how a host thread that spins on them is found (pinned.cpp has
// the theory of operation).
#pragma once

#include <cstdint>

namespace allranks::shim {

// Takes access to every mapping away, so that spins are found; gives it back, for the rest of the
// thread's segment. Safe in signal handlers.
void ClosePinnedPages();
void OpenPinnedPages();

// In a forked child: every mapping becomes an ordinary private copy.
void MakePinnedPrivate();

// Size of the memory operand of the instruction at `code`, 1 to 16 bytes; 0 if it is not one of
// those that compilers use to poll.
std::uint32_t MemoryOperandSize(const std::uint8_t* code);

}  // namespace allranks::shim

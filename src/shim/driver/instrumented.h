// Host code that is compiled with hooks before its memory accesses (instrumented.cpp has them).
// While a thread is between Begin and End, each access to watched memory first tells the node how
// long the code has run.
#pragma once

#include <cstdint>

namespace allranks::shim {

void WatchPinned(const void* memory, std::uint64_t size);
void BeginInstrumented();
void EndInstrumented();

}  // namespace allranks::shim

// Numbers by which the Machine and its users name things.
#pragma once

#include <cstdint>

namespace allranks::node {

using ProcessId = std::uint32_t;
using OpId = std::uint64_t;  // 0: no operation (always complete)
using ModuleId = std::uint64_t;
using KernelId = std::uint64_t;
using StreamId = std::uint64_t;  // never 0; each (process, device) has DefaultStream()
using EventId = std::uint64_t;
using GraphId = std::uint64_t;
using Address = std::uint64_t;
using PoolId = std::uint64_t;    // never 0
using HandleId = std::uint64_t;  // of memory; never 0

}  // namespace allranks::node

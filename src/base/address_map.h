// The parts of a process's address space that belong to the node. Nothing of the process itself
// lies there. Shim and node agree on them; all are fixed, so that no address depends on who came
// first.
#pragma once

#include <cstdint>

namespace allranks {

// Arenas: pinned memory of rank r starts at kPinnedArena + r * kPinnedStride and is mapped at the
// same address in the process; device arenas are never mapped there. Fixed, so that no address
// depends on who came first.
inline constexpr std::uint64_t kPinnedArena = 0x2000'0000'0000;
inline constexpr std::uint64_t kPinnedStride = std::uint64_t{256} << 30;
inline constexpr int kPinnedArenas = 64;
inline constexpr std::uint64_t kPinnedSize = kPinnedArenas * kPinnedStride;
inline constexpr std::uint64_t kDeviceArena = 0x3000'0000'0000;
inline constexpr std::uint64_t kDeviceStride = std::uint64_t{256} << 30;
inline constexpr int kDeviceArenas = 128;
inline constexpr std::uint64_t kDeviceSize = kDeviceArenas * kDeviceStride;
// Where processes reserve addresses for themselves (node/virtual_memory.h): each has all of it.
inline constexpr std::uint64_t kReservedArena = 0x1000'0000'0000;
inline constexpr std::uint64_t kReservedSize = 0x1000'0000'0000;

// Generic-address windows of the spaces that are not global memory. Processes never have mappings
// there.
inline constexpr std::uint64_t kSharedWindow = 0x6000'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x6100'0000'0000;
inline constexpr std::uint64_t kParamWindow = 0x6200'0000'0000;
// Addresses of functions: kFunctionWindow + 16 * (number in the module + 1). Nothing can be loaded
// there.
inline constexpr std::uint64_t kFunctionWindow = 0x6300'0000'0000;
inline constexpr std::uint64_t kWindowSize = 0x0100'0000'0000;

constexpr bool IsReservedAddress(std::uint64_t a) { return a - kReservedArena < kReservedSize; }
constexpr bool IsPinnedAddress(std::uint64_t a) { return a - kPinnedArena < kPinnedSize; }
constexpr bool IsDeviceAddress(std::uint64_t a) {
  return a - kDeviceArena < kDeviceSize || IsReservedAddress(a);
}

}  // namespace allranks

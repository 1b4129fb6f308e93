// See dense.h.
#include "node/alu/dense.h"

#include <cstring>

#include "node/code/lanes.h"

// Sanitizers instrument the resolver that picks a clone, which runs before they are ready.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ALLRANKS_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define ALLRANKS_CLONES
#endif

namespace allranks::node {
namespace {

template <class T, int kCount>
inline __attribute__((always_inline)) void Load(const Slot* data, std::byte* registers,
                                                const std::byte* from) {
  const auto* s = reinterpret_cast<const T*>(from);
  for (int e = 0; e < kCount; ++e) {
    if (data[e] == kNoSlot) continue;
    auto* d = reinterpret_cast<T*>(registers + data[e] * kSlotBytes);
    for (int l = 0; l < kLanes; ++l) d[l] = s[l * kCount + e];
  }
}

template <class T, int kCount>
inline __attribute__((always_inline)) void Store(const Slot* data, const std::byte* registers,
                                                 const std::byte* constants, std::byte* to) {
  auto* d = reinterpret_cast<T*>(to);
  const T* s[kCount];
  for (int e = 0; e < kCount; ++e) {
    s[e] = reinterpret_cast<const T*>(SlotAt(registers, constants, data[e]));
  }
  for (int l = 0; l < kLanes; ++l) {
    for (int e = 0; e < kCount; ++e) d[l * kCount + e] = s[e][l];
  }
}

}  // namespace

ALLRANKS_CLONES bool IsDense(const std::uint64_t* address, std::uint64_t stride) {
  std::uint64_t off = 0;
  const std::uint64_t first = address[0];
  for (std::uint64_t l = 0; l < kLanes; ++l) off |= address[l] - first - l * stride;
  return off == 0;
}

ALLRANKS_CLONES bool LoadDense(const Slot* data, int width, int count, std::byte* registers,
                               const std::byte* from) {
  switch (width * 8 + count) {
    case 4 * 8 + 1:
      Load<std::uint32_t, 1>(data, registers, from);
      return true;
    case 4 * 8 + 2:
      Load<std::uint32_t, 2>(data, registers, from);
      return true;
    case 4 * 8 + 4:
      Load<std::uint32_t, 4>(data, registers, from);
      return true;
    case 8 * 8 + 1:
      Load<std::uint64_t, 1>(data, registers, from);
      return true;
    case 8 * 8 + 2:
      Load<std::uint64_t, 2>(data, registers, from);
      return true;
    default:
      return false;
  }
}

ALLRANKS_CLONES bool StoreDense(const Slot* data, int width, int count, const std::byte* registers,
                                const std::byte* constants, std::byte* to) {
  switch (width * 8 + count) {
    case 4 * 8 + 1:
      Store<std::uint32_t, 1>(data, registers, constants, to);
      return true;
    case 4 * 8 + 2:
      Store<std::uint32_t, 2>(data, registers, constants, to);
      return true;
    case 4 * 8 + 4:
      Store<std::uint32_t, 4>(data, registers, constants, to);
      return true;
    case 8 * 8 + 1:
      Store<std::uint64_t, 1>(data, registers, constants, to);
      return true;
    case 8 * 8 + 2:
      Store<std::uint64_t, 2>(data, registers, constants, to);
      return true;
    default:
      return false;
  }
}

}  // namespace allranks::node

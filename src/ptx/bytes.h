// Bounds-checked reads from untrusted little-endian bytes, for fatbin.cpp and cubin.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace allranks::ptx {

using Bytes = std::span<const std::byte>;

// False if [offset, offset + size) is not within `bytes`; no sum here can wrap around.
inline bool Contains(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

// Empty if the range is not within `bytes`.
inline Bytes Slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  return Contains(bytes, offset, size) ? bytes.subspan(offset, size) : Bytes();
}

template <class T>
bool ReadAt(Bytes bytes, std::uint64_t offset, T* value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (!Contains(bytes, offset, sizeof(T))) return false;
  std::memcpy(value, bytes.data() + offset, sizeof(T));
  return true;
}

inline std::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace allranks::ptx

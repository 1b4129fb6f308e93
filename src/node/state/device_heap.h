// malloc and free of kernels: which parts of a device's heap are in use. The memory itself is one
// object of the process (machine_memory.cpp), made at the first malloc; it outlives kernels.
#pragma once

#include <cstdint>
#include <map>

namespace allranks::node {

class DeviceHeap {
 public:
  static constexpr std::uint64_t kDefaultSize = std::uint64_t{8} << 20;

  DeviceHeap() = default;
  explicit DeviceHeap(std::uint64_t size);

  // Offset of `size` fresh bytes, aligned to 16; 0 when there is no room. First fit, so the same
  // calls give the same offsets.
  std::uint64_t Take(std::uint64_t size);
  // False if nothing was taken at this offset.
  bool Return(std::uint64_t offset);
  // Bytes taken at this offset, or 0.
  std::uint64_t SizeAt(std::uint64_t offset) const;

 private:
  std::map<std::uint64_t, std::uint64_t> free_, used_;  // offset → bytes
};

}  // namespace allranks::node

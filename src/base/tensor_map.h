// A tensor map: the 128 opaque bytes that describe a tensor in global memory to the tensor memory
// accelerator. cuTensorMapEncodeTiled (the shim) writes them, cp.async.bulk.tensor (the node) reads
// them; the layout is ours, and carries a version in its magic number.
#pragma once

#include <cstdint>
#include <cstring>

namespace allranks {

inline constexpr std::uint32_t kTensorMapMagic = 0x31505441;  // "ATP1"
inline constexpr int kTensorMapBytes = 128;

struct TensorMap {
  // Numbers as in CUtensorMapDataType.
  enum class Type : std::uint8_t {
    kU8,
    kU16,
    kU32,
    kS32,
    kU64,
    kS64,
    kF16,
    kF32,
    kF64,
    kBF16,
    kF32Ftz,
    kTF32,
    kTF32Ftz,
  };
  std::uint32_t magic = kTensorMapMagic;
  Type type = Type::kU8;
  std::uint8_t rank = 1;      // 1 to 5
  std::uint8_t swizzle = 0;   // 0: none; 1, 2, 3: 32, 64, 128 bytes
  std::uint8_t fill_nan = 0;  // what is outside is NaN, not zero
  std::uint64_t address = 0;
  std::uint64_t stride[4] = {};  // bytes from one element of dimension i + 1 to the next
  std::uint32_t size[5] = {};    // of the tensor, less one: up to 2^32 elements
  std::uint16_t box[5] = {};
  std::uint8_t step[5] = {};  // of the elements that are taken
  std::uint8_t interleave = 0;

  int ElementBytes() const {
    static constexpr std::uint8_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return kBytes[static_cast<int>(type)];
  }
  // Elements of the box in dimension i that are taken. The step of dimension 0 is ignored.
  std::uint32_t Taken(int i) const {
    return i == 0 ? box[0] : (std::uint32_t{box[i]} + step[i] - 1) / step[i];
  }
  // Whether the fields are what an encoder may have written: the bytes come from a program.
  bool Valid() const {
    if (magic != kTensorMapMagic || type > Type::kTF32Ftz || rank < 1 || rank > 5 || swizzle > 3 ||
        interleave != 0) {
      return false;
    }
    for (int i = 0; i < rank; ++i) {
      if (box[i] < 1 || box[i] > 256 || step[i] < 1 || step[i] > 8) return false;
    }
    return true;
  }
};
static_assert(sizeof(TensorMap) <= kTensorMapBytes);

inline void StoreTensorMap(const TensorMap& map, void* bytes) {
  std::memset(bytes, 0, kTensorMapBytes);
  std::memcpy(bytes, &map, sizeof(map));
}

inline TensorMap LoadTensorMap(const void* bytes) {
  TensorMap map;
  std::memcpy(&map, bytes, sizeof(map));
  return map;
}

}  // namespace allranks

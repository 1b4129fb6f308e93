// Tensor maps: what cuTensorMapEncodeTiled checks and writes (base/tensor_map.h). The node is not
// asked: a map is bytes that a program passes to its kernels itself.
#include "base/tensor_map.h"

#include <cstdint>

#include "shim/cuda/driver.h"

namespace {

using allranks::TensorMap;

constexpr std::uint64_t kMaxDimension = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;

bool IsFloat(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* tensor_map, CUtensorMapDataType type,
                                        cuuint32_t rank, void* address, const cuuint64_t* size,
                                        const cuuint64_t* strides, const cuuint32_t* box,
                                        const cuuint32_t* steps, CUtensorMapInterleave interleave,
                                        CUtensorMapSwizzle swizzle,
                                        CUtensorMapL2promotion promotion,
                                        CUtensorMapFloatOOBfill fill) {
  if (tensor_map == nullptr || reinterpret_cast<std::uintptr_t>(tensor_map) % 64 != 0 ||
      size == nullptr || box == nullptr || steps == nullptr || rank < 1 || rank > 5 ||
      (rank > 1 && strides == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (interleave < CU_TENSOR_MAP_INTERLEAVE_NONE || interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
      promotion < CU_TENSOR_MAP_L2_PROMOTION_NONE ||
      promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B || fill < CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ||
      fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA || type < 0 || swizzle < 0 ||
      reinterpret_cast<std::uintptr_t>(address) % 16 != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ || swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
      interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const bool nan = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  if (nan && !IsFloat(type)) return CUDA_ERROR_INVALID_VALUE;
  TensorMap map;
  map.type = static_cast<TensorMap::Type>(type);
  map.rank = static_cast<std::uint8_t>(rank);
  map.swizzle = static_cast<std::uint8_t>(swizzle);
  map.fill_nan = nan ? 1 : 0;
  map.address = reinterpret_cast<std::uint64_t>(address);
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (size[i] == 0 || size[i] > kMaxDimension || box[i] == 0 || box[i] > 256 || steps[i] == 0 ||
        steps[i] > 8) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    map.size[i] = static_cast<std::uint32_t>(size[i] - 1);
    map.box[i] = static_cast<std::uint16_t>(box[i]);
    map.step[i] = static_cast<std::uint8_t>(steps[i]);
    if (i == 0) continue;
    if (strides[i - 1] % 16 != 0 || strides[i - 1] >= kMaxStride) return CUDA_ERROR_INVALID_VALUE;
    map.stride[i - 1] = strides[i - 1];
  }
  const std::uint32_t row = box[0] * static_cast<std::uint32_t>(map.ElementBytes());
  if (row % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
  if (map.swizzle != 0 && row > (16u << map.swizzle)) return CUDA_ERROR_INVALID_VALUE;
  allranks::StoreTensorMap(map, tensor_map);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuTensorMapReplaceAddress(CUtensorMap* tensor_map, void* address) {
  if (tensor_map == nullptr || reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  TensorMap map = allranks::LoadTensorMap(tensor_map);
  if (!map.Valid()) return CUDA_ERROR_INVALID_VALUE;
  map.address = reinterpret_cast<std::uint64_t>(address);
  allranks::StoreTensorMap(map, tensor_map);
  return CUDA_SUCCESS;
}

}  // extern "C"

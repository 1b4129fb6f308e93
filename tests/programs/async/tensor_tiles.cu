// Tensor maps as kernel parameters: tiles of a matrix are loaded, changed and stored at another
// place, with borders that are not multiples of the tile; what an encoder must refuse.
// nvcc: -arch=sm_90
#include <cuda.h>

#include <vector>

#include "check.h"

namespace {

constexpr int kRows = 50, kColumns = 72, kTileRows = 16, kTileColumns = 32;

__device__ uint32_t Shared(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Negates every tile.
__global__ void Negate(const __grid_constant__ CUtensorMap from,
                       const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(128) int tile[kTileRows][kTileColumns];
  __shared__ alignas(8) uint64_t barrier;
  const int x = blockIdx.x * kTileColumns, y = blockIdx.y * kTileRows;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&barrier)));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(&barrier)),
                 "r"(static_cast<uint32_t>(sizeof(tile)))
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(Shared(tile)),
        "l"(&from), "r"(x), "r"(y), "r"(Shared(&barrier))
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{\n.reg .pred p;\nWAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra WAIT;\n}" ::"r"(
          Shared(&barrier))
      : "memory");
  for (int i = threadIdx.x; i < kTileRows * kTileColumns; i += blockDim.x) {
    const int row = i / kTileColumns, column = i % kTileColumns;
    // What is outside the matrix is zero.
    if ((y + row >= kRows || x + column >= kColumns) && tile[row][column] != 0) __trap();
    tile[row][column] = -tile[row][column];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
            &to),
        "r"(x), "r"(y), "r"(Shared(tile))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

CUresult Make(Encode encode, CUtensorMap* map, int* data, cuuint32_t columns) {
  const cuuint64_t size[] = {kColumns, kRows}, stride[] = {kColumns * sizeof(int)};
  const cuuint32_t box[] = {columns, kTileRows}, step[] = {1, 1};
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, data, size, stride, box, step,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

}  // namespace

int main() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                              cudaEnableDefault, &found));
  REQUIRE(entry != nullptr && found == cudaDriverEntryPointSuccess, "no cuTensorMapEncodeTiled");
  const auto encode = reinterpret_cast<Encode>(entry);

  constexpr int kCount = kRows * kColumns;
  std::vector<int> host(kCount), result(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i + 1;
  int *in, *out;
  CUDA_CHECK(cudaMalloc(&in, kCount * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&out, kCount * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(in, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  CUtensorMap from, to;
  REQUIRE(Make(encode, &from, in, kTileColumns) == CUDA_SUCCESS, "map of the source");
  REQUIRE(Make(encode, &to, out, kTileColumns) == CUDA_SUCCESS, "map of the destination");
  CUtensorMap none;
  REQUIRE(Make(encode, &none, in, 257) == CUDA_ERROR_INVALID_VALUE, "a box of 257");
  REQUIRE(Make(encode, &none, in, 3) == CUDA_ERROR_INVALID_VALUE, "a box of 12 bytes");
  REQUIRE(Make(encode, &none, in + 1, 4) == CUDA_ERROR_INVALID_VALUE, "an unaligned tensor");

  const dim3 grid((kColumns + kTileColumns - 1) / kTileColumns,
                  (kRows + kTileRows - 1) / kTileRows);
  Negate<<<grid, 64>>>(from, to);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpy(result.data(), out, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) REQUIRE(result[i] == -host[i], "element %d is %d", i, result[i]);
  return 0;
}

// Tensor maps: two-dimensional tiles by cp.async.bulk.tensor into shared memory, out-of-bounds
// parts filled with zero, the way back to global memory clipped at the edge, the 128-byte swizzle,
// and a three-dimensional map with strides.
//
// nvcc: -lcuda -arch=sm_90
#include <cuda.h>

#include "arrays.h"

namespace {

using u64 = unsigned long long;
constexpr int kTile = 16;

__device__ unsigned Shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ void Init(u64* barrier) {
  asm volatile(
      "mbarrier.init.shared.b64 [%0], 1;\n\tfence.proxy.async.shared::cta;" ::"r"(Shared(barrier))
      : "memory");
}
__device__ void ExpectAndWait(u64* barrier, unsigned bytes, bool expects) {
  if (expects)
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(barrier)),
                 "r"(bytes)
                 : "memory");
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(Shared(barrier))
        : "memory");
  }
}

__global__ void Tile2D(const __grid_constant__ CUtensorMap from,
                       const __grid_constant__ CUtensorMap to, int x, int y, int* seen) {
  __shared__ alignas(128) int tile[kTile][kTile];
  __shared__ u64 barrier;
  const int thread = threadIdx.x;
  if (thread == 0) {
    Init(&barrier);
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%2, %3}], [%4];" ::"r"(Shared(tile)),
        "l"(&from), "r"(x), "r"(y), "r"(Shared(&barrier))
        : "memory");
  }
  __syncthreads();
  ExpectAndWait(&barrier, sizeof(tile), thread == 0);
  for (int i = thread; i < kTile * kTile; i += blockDim.x) {
    seen[i] = tile[i / kTile][i % kTile];
    tile[i / kTile][i % kTile] += 1000;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (thread == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to),
        "r"(x), "r"(y), "r"(Shared(tile))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// Rows of 128 bytes: with the swizzle, 16-byte piece c of row r lies at c ^ (r % 8).
__global__ void Swizzled(const __grid_constant__ CUtensorMap from, int* seen) {
  __shared__ alignas(1024) int tile[8][32];
  __shared__ u64 barrier;
  const int thread = threadIdx.x;
  if (thread == 0) {
    Init(&barrier);
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
        "{%2, %3, %4}], [%5];" ::"r"(Shared(tile)),
        "l"(&from), "r"(0), "r"(2), "r"(1), "r"(Shared(&barrier))
        : "memory");
  }
  __syncthreads();
  ExpectAndWait(&barrier, sizeof(tile), thread == 0);
  for (int i = thread; i < 8 * 32; i += blockDim.x) {
    const int row = i / 32, column = i % 32;
    seen[i] = tile[row][(column / 4 ^ row % 8) * 4 + column % 4];
  }
}

CUtensorMap Map(int* memory, std::vector<cuuint64_t> sizes, std::vector<cuuint64_t> strides,
                std::vector<cuuint32_t> box, CUtensorMapSwizzle swizzle) {
  CUtensorMap map;
  const std::vector<cuuint32_t> steps(sizes.size(), 1);
  const CUresult result = cuTensorMapEncodeTiled(
      &map, CU_TENSOR_MAP_DATA_TYPE_INT32, static_cast<cuuint32_t>(sizes.size()), memory,
      sizes.data(), strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  REQUIRE(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled: %d", result);
  return map;
}

}  // namespace

int main() {
  constexpr int kWidth = 40, kHeight = 30;
  std::vector<int> in;
  for (int i = 0; i < kWidth * kHeight; ++i) in.push_back(i + 1);
  int* source = ToDevice(in);
  CUDA_CHECK(cudaFree(nullptr));
  for (const auto& [x, y] : {std::pair(0, 0), {5, 7}, {32, 20}, {-3, -6}, {100, 0}}) {
    int* target = Zeroed<int>(kWidth * kHeight);
    int* seen = Unwritten<int>(kTile * kTile);
    const CUtensorMap from =
        Map(source, {kWidth, kHeight}, {kWidth * 4}, {kTile, kTile}, CU_TENSOR_MAP_SWIZZLE_NONE);
    const CUtensorMap to =
        Map(target, {kWidth, kHeight}, {kWidth * 4}, {kTile, kTile}, CU_TENSOR_MAP_SWIZZLE_NONE);
    Tile2D<<<1, 64>>>(from, to, x, y, seen);
    std::vector<int> tile, copied(kWidth * kHeight, 0);
    for (int i = 0; i < kTile * kTile; ++i) {
      const int column = x + i % kTile, row = y + i / kTile;
      const bool inside = column >= 0 && column < kWidth && row >= 0 && row < kHeight;
      tile.push_back(inside ? in[row * kWidth + column] : 0);
      if (inside) copied[row * kWidth + column] = tile.back() + 1000;
    }
    REQUIRE_SAME(ToHost(seen, tile.size()), tile);
    REQUIRE_SAME(ToHost(target, copied.size()), copied);
  }
  // 3D: 32 x 5 x 3 elements in planes of 40 x 6; the box has 32 x 4 x 2.
  const CUtensorMap map =
      Map(source, {32, 5, 3}, {40 * 4, 240 * 4}, {32, 4, 2}, CU_TENSOR_MAP_SWIZZLE_128B);
  int* seen = Unwritten<int>(256);
  Swizzled<<<1, 64>>>(map, seen);
  std::vector<int> expected;
  for (int i = 0; i < 256; ++i) {
    const int x = i % 32, y = 2 + i / 32 % 4, z = 1 + i / 128;
    expected.push_back(y < 5 && z < 3 ? in[z * 240 + y * 40 + x] : 0);
  }
  REQUIRE_SAME(ToHost(seen, 256), expected);
  std::puts("PASS tma_tiles");
}

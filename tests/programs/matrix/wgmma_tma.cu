// wgmma with operands that TMA brings into shared memory in the 128-byte swizzle: C = A * B of
// 128 x 64 x 128 in half with float accumulators, two warpgroups, two stages of 64 along k.
//
// nvcc: -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lcuda
#include <cuda.h>
#include <cuda_fp16.h>

#include "arrays.h"

namespace {

using u64 = unsigned long long;
constexpr int kM = 128, kN = 64, kK = 128, kStep = 64;

__device__ unsigned Shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// The matrix descriptor of a tile with rows of 128 bytes, eight of which make 1024 (PTX ISA,
// "matrix descriptor"): address and stride in units of 16 bytes, 128-byte swizzle in bits 62
// and 63.
__device__ u64 Descriptor(const void* tile) {
  return (Shared(tile) & 0x3ffff) >> 4 | u64{1} << 16 | u64{1024 >> 4} << 32 | u64{1} << 62;
}

__device__ void Load(void* tile, const CUtensorMap* map, int x, int y, u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(Shared(tile)),
      "l"(map), "r"(x), "r"(y), "r"(Shared(barrier))
      : "memory");
}

#define D8(i)                                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])

// d += a tile of 64 x 16 times one of 64 x 16, transposed.
__device__ void Multiply(float (&d)[32], u64 a, u64 b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, 1, 1, 1, 0, 0;"
      : D8(0), D8(8), D8(16), D8(24)
      : "l"(a), "l"(b));
}

// a is M x K, b is N x K, both with k along the rows.
__global__ void __launch_bounds__(256) Product(const __grid_constant__ CUtensorMap a,
                                               const __grid_constant__ CUtensorMap b, float* c) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  auto* left = reinterpret_cast<__half(*)[kM * kStep]>(tiles);
  auto* right = reinterpret_cast<__half(*)[kN * kStep]>(left + 2);
  __shared__ u64 ready[2];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&ready[stage])) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    for (int stage = 0; stage < 2; ++stage) {
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(&ready[stage])),
                   "r"(static_cast<unsigned>(sizeof(left[0]) + sizeof(right[0])))
                   : "memory");
      Load(left[stage], &a, stage * kStep, 0, &ready[stage]);
      Load(right[stage], &b, stage * kStep, 0, &ready[stage]);
    }
  }
  __syncthreads();
  const int group = threadIdx.x / 128, thread = threadIdx.x % 128;
  float d[32] = {};
  for (int stage = 0; stage < 2; ++stage) {
    unsigned done = 0;
    while (!done) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;"
          " selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(Shared(&ready[stage]))
          : "memory");
    }
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    const u64 from = Descriptor(left[stage] + group * 64 * kStep), to = Descriptor(right[stage]);
    for (int k = 0; k < kStep / 16; ++k) Multiply(d, from + k * 2, to + k * 2);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  const int row = group * 64 + thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
  for (int i = 0; i < 32; ++i) {
    c[(row + i % 4 / 2 * 8) * kN + i / 4 * 8 + column + i % 2] = d[i];
  }
}

CUtensorMap Map(__half* memory, cuuint64_t rows) {
  CUtensorMap map;
  const cuuint64_t sizes[] = {kK, rows}, strides[] = {kK * sizeof(__half)};
  const cuuint32_t box[] = {kStep, static_cast<cuuint32_t>(rows)}, steps[] = {1, 1};
  const CUresult result =
      cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, memory, sizes, strides, box,
                             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  REQUIRE(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled: %d", result);
  return map;
}

}  // namespace

int main() {
  Random random(167);
  std::vector<__half> a, b;
  std::vector<float> left, right, expected(kM * kN, 0);
  for (int i = 0; i < kM * kK; ++i) {
    left.push_back(static_cast<float>(static_cast<int>(random.Next() % 9) - 4));
    a.push_back(__float2half(left.back()));
  }
  for (int i = 0; i < kN * kK; ++i) {
    right.push_back(static_cast<float>(static_cast<int>(random.Next() % 9) - 4));
    b.push_back(__float2half(right.back()));
  }
  for (int i = 0; i < kM * kN; ++i) {
    for (int k = 0; k < kK; ++k) expected[i] += left[i / kN * kK + k] * right[i % kN * kK + k];
  }
  float* c = Unwritten<float>(kM * kN);
  const int bytes = 2 * (kM + kN) * kStep * static_cast<int>(sizeof(__half));
  CUDA_CHECK(cudaFuncSetAttribute(Product, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  Product<<<1, 256, bytes>>>(Map(ToDevice(a), kM), Map(ToDevice(b), kN), c);
  REQUIRE_SAME(ToHost(c, kM * kN), expected);
  std::puts("PASS wgmma_tma");
}

// mma.sync.m16n8k16 with half inputs: accumulators in half and in float, fragments filled by hand
// as the PTX ISA draws them, a product of 64 x 64 x 64 by one block.
// nvcc: -arch=sm_90
#include <cuda_fp16.h>

#include "arrays.h"

namespace {

constexpr int kSide = 64;

__device__ unsigned Pair(const __half* p) { return *reinterpret_cast<const unsigned*>(p); }
__device__ unsigned Pair(__half low, __half high) {
  const __half2 pair = __halves2half2(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Each warp makes tiles of 16 x 8; a is row-major, b too (so its columns are gathered).
template <bool kFloat>
__global__ void Multiply(const __half* a, const __half* b, float* c) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, inside = lane % 4;
  for (int tile = warp; tile < (kSide / 16) * (kSide / 8); tile += blockDim.x / 32) {
    const int row = tile / (kSide / 8) * 16, column = tile % (kSide / 8) * 8;
    float d[4] = {};
    unsigned h[2] = {};
    for (int k = 0; k < kSide; k += 16) {
      const __half* left = a + (row + group) * kSide + k + inside * 2;
      const unsigned a0 = Pair(left), a1 = Pair(left + 8 * kSide), a2 = Pair(left + 8),
                     a3 = Pair(left + 8 * kSide + 8);
      const __half* right = b + (k + inside * 2) * kSide + column + group;
      const unsigned b0 = Pair(right[0], right[kSide]),
                     b1 = Pair(right[8 * kSide], right[9 * kSide]);
      if constexpr (kFloat) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
      } else {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, "
            "{%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
            : "+r"(h[0]), "+r"(h[1])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
      }
    }
    if constexpr (!kFloat) {
      for (int i = 0; i < 2; ++i) {
        const __half2 pair = *reinterpret_cast<const __half2*>(&h[i]);
        d[2 * i] = __low2float(pair), d[2 * i + 1] = __high2float(pair);
      }
    }
    for (int i = 0; i < 4; ++i) {
      c[(row + group + i / 2 * 8) * kSide + column + inside * 2 + i % 2] = d[i];
    }
  }
}

}  // namespace

int main() {
  // Small integers: every sum stays below 2048 and is exact even in half.
  Random random(127);
  std::vector<__half> a, b;
  std::vector<float> expected(kSide * kSide, 0), left, right;
  for (int i = 0; i < kSide * kSide; ++i) {
    left.push_back(static_cast<float>(static_cast<int>(random.Next() % 9) - 4));
    right.push_back(static_cast<float>(static_cast<int>(random.Next() % 9) - 4));
    a.push_back(__float2half(left.back()));
    b.push_back(__float2half(right.back()));
  }
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) {
      for (int k = 0; k < kSide; ++k) {
        expected[i * kSide + j] += left[i * kSide + k] * right[k * kSide + j];
      }
    }
  }
  float* c = Unwritten<float>(kSide * kSide);
  Multiply<true><<<1, 128>>>(ToDevice(a), ToDevice(b), c);
  REQUIRE_SAME(ToHost(c, kSide * kSide), expected);
  CUDA_CHECK(cudaMemset(c, 0xee, kSide * kSide * sizeof(float)));
  Multiply<false><<<1, 64>>>(ToDevice(a), ToDevice(b), c);
  REQUIRE_SAME(ToHost(c, kSide * kSide), expected);
  std::puts("PASS mma_f16");
}

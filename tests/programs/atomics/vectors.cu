// Vector atomics of sm_90: float2 and float4 additions on global memory, and red/atom with packed
// half and bfloat16 vectors in PTX. Each element is atomic by itself.
// nvcc: -arch=sm_90
#include <cuda_fp16.h>

#include "arrays.h"

namespace {

constexpr int kThreads = 128, kBlocks = 4, kCount = kThreads * kBlocks;

__global__ void Add(float4* four, float2* two, float4* old) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  old[i] = atomicAdd(four, make_float4(1, 2, -1, static_cast<float>(i)));
  atomicAdd(two + i % 3, make_float2(0.5f, static_cast<float>(i % 7)));
}

__global__ void Packed(__half* halves, float* floats) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const unsigned one_two = 0x40003c00u;  // 1.0 below, 2.0 above
  asm volatile("red.relaxed.gpu.global.add.noftz.v4.f16x2 [%0], {%1, %1, %1, %1};" ::"l"(halves),
               "r"(one_two)
               : "memory");
  asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(floats), "f"(1.0f),
               "f"(static_cast<float>(i % 2))
               : "memory");
}

__global__ void Wide(__half* halves, unsigned short* old) {
  unsigned short got[4];
  const unsigned short one = 0x3c00;
  asm volatile("atom.relaxed.gpu.global.add.noftz.v4.f16 {%0, %1, %2, %3}, [%4], {%5, %5, %5, %5};"
               : "=h"(got[0]), "=h"(got[1]), "=h"(got[2]), "=h"(got[3])
               : "l"(halves), "h"(one)
               : "memory");
  for (int i = 0; i < 4; ++i) old[i] = got[i];
}

}  // namespace

int main() {
  float4* four = Zeroed<float4>(1);
  float2* two = Zeroed<float2>(3);
  float4* old = Unwritten<float4>(kCount);
  Add<<<kBlocks, kThreads>>>(four, two, old);
  const std::vector<float4> returned = ToHost(old, kCount);
  const float4 sum = Fetch(four);
  REQUIRE(sum.x == kCount && sum.y == 2 * kCount && sum.z == -kCount &&
              sum.w == kCount * (kCount - 1) / 2,
          "float4: %g %g %g %g", sum.x, sum.y, sum.z, sum.w);
  std::vector<bool> seen(kCount, false);
  for (const float4& value : returned) {
    REQUIRE(value.x >= 0 && value.x < kCount && !seen[static_cast<int>(value.x)],
            "old value twice");
    seen[static_cast<int>(value.x)] = true;
  }
  float2 expected[3] = {};
  for (int i = 0; i < kCount; ++i) {
    expected[i % 3].x += 0.5f;
    expected[i % 3].y += static_cast<float>(i % 7);
  }
  for (int i = 0; i < 3; ++i) {
    const float2 got = Fetch(two + i);
    REQUIRE(got.x == expected[i].x && got.y == expected[i].y, "float2 %d: %g %g", i, got.x, got.y);
  }

  __half* halves = Zeroed<__half>(8);
  float* floats = Zeroed<float>(2);
  Packed<<<kBlocks, kThreads>>>(halves, floats);
  const std::vector<float> sums = ToHost(floats, 2);
  REQUIRE(sums[0] == kCount && sums[1] == kCount / 2, "v2.f32: %g %g", sums[0], sums[1]);
  for (int i = 0; i < 8; ++i) {
    const float got = __half2float(Fetch(halves + i));
    REQUIRE(got == (i % 2 ? 2 * kCount : kCount), "half %d: %g", i, got);
  }
  unsigned short* before = Unwritten<unsigned short>(4);
  Wide<<<1, 1>>>(halves, before);
  const std::vector<unsigned short> bits = ToHost(before, 4);
  for (int i = 0; i < 4; ++i) {
    const float was = __half2float(__half(__half_raw{bits[i]})),
                now = __half2float(Fetch(halves + i));
    REQUIRE(was == (i % 2 ? 2 * kCount : kCount) && now == was + 1, "v4.f16 %d: %g, then %g", i,
            was, now);
  }
  std::puts("PASS vectors");
}

// Floating-point atomics: add on float, double, half, bfloat16 and their pairs, exchange and
// compare-and-swap on bit patterns; values chosen so that every order of additions is exact.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "arrays.h"

namespace {

constexpr int kThreads = 128, kBlocks = 4, kCount = kThreads * kBlocks;

struct Sums {
  float f;
  double d;
  __half2 h2;
  __nv_bfloat162 b2;
  __half h[2];
  __nv_bfloat16 b[2];
  float low, exchanged;
};

__device__ void FloatMin(float* at, float value) {
  int seen = __float_as_int(*const_cast<volatile float*>(at));
  while (__int_as_float(seen) > value) {
    const int expected = seen;
    seen = atomicCAS(reinterpret_cast<int*>(at), expected, __float_as_int(value));
    if (seen == expected) break;
  }
}

__global__ void Add(Sums* sums, float* old) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  old[i] = atomicAdd(&sums->f, 0.5f);
  atomicAdd(&sums->d, static_cast<double>(i) + 0.25);
  if (i < 200) {
    atomicAdd(&sums->h2, __floats2half2_rn(1.0f, -0.5f));
    atomicAdd(&sums->b2, __floats2bfloat162_rn(0.5f, 1.0f));
    atomicAdd(&sums->h[i % 2], __float2half(2.0f));
    atomicAdd(&sums->b[i % 2], __float2bfloat16(-1.0f));
  }
  FloatMin(&sums->low, static_cast<float>((i * 37) % 211) - 100.0f);
  atomicExch(&sums->exchanged, static_cast<float>(i));
}

__global__ void SharedAdd(float* out) {
  __shared__ float f;
  __shared__ double d;
  __shared__ __half2 h2;
  if (threadIdx.x == 0) f = 0, d = 0, h2 = __floats2half2_rn(0, 0);
  __syncthreads();
  atomicAdd(&f, 1.0f);
  atomicAdd(&d, 0.125);
  atomicAdd(&h2, __floats2half2_rn(1.0f, 2.0f));
  __syncthreads();
  if (threadIdx.x == 0) {
    out[0] = f;
    out[1] = static_cast<float>(d);
    out[2] = __low2float(h2);
    out[3] = __high2float(h2);
  }
}

// Additions that are not exact are rounded one after the other: 2^24 + 1 never gets there in steps.
__global__ void Rounding(float* at) {
  for (int i = 0; i < 10; ++i) atomicAdd(at, 1.0f);
}

}  // namespace

int main() {
  Sums start = {};
  start.low = 1e30f;
  Sums* sums = nullptr;
  CUDA_CHECK(cudaMalloc(&sums, sizeof(Sums)));
  Upload(sums, &start, 1);
  float* old = Unwritten<float>(kCount);
  Add<<<kBlocks, kThreads>>>(sums, old);
  double sum_of_old = 0;
  for (const float value : ToHost(old, kCount)) sum_of_old += value;
  REQUIRE(sum_of_old == 0.5 * kCount * (kCount - 1) / 2, "the old values sum to %g", sum_of_old);
  const Sums got = Fetch(sums);
  REQUIRE(got.f == kCount / 2, "float: %g", got.f);
  REQUIRE(got.d == kCount * (kCount - 1) / 2 + 0.25 * kCount, "double: %g", got.d);
  REQUIRE(__low2float(got.h2) == 200 && __high2float(got.h2) == -100, "half2: %g %g",
          __low2float(got.h2), __high2float(got.h2));
  REQUIRE(__low2float(got.b2) == 100 && __high2float(got.b2) == 200, "bfloat162: %g %g",
          __low2float(got.b2), __high2float(got.b2));
  REQUIRE(__half2float(got.h[0]) == 200 && __half2float(got.h[1]) == 200, "half");
  REQUIRE(__bfloat162float(got.b[0]) == -100 && __bfloat162float(got.b[1]) == -100, "bfloat16");
  REQUIRE(got.low == -100, "minimum: %g", got.low);
  REQUIRE(got.exchanged >= 0 && got.exchanged < kCount, "exchanged: %g", got.exchanged);

  float* out = Unwritten<float>(4);
  SharedAdd<<<1, kThreads>>>(out);
  const std::vector<float> expected = {kThreads, kThreads / 8, kThreads, 2 * kThreads};
  REQUIRE_SAME(ToHost(out, 4), expected);

  float* edge = ToDevice(std::vector<float>{16777216.0f});
  Rounding<<<1, 1>>>(edge);
  REQUIRE(ToHost(edge, 1)[0] == 16777216.0f, "2^24 + 1 in steps is %g", Fetch(edge));
  std::puts("PASS floats");
}

// Atomics on floating-point types: half, bfloat16, their pairs, float, double and vectors of float,
// in global and shared memory. All sums are exact, so their order does not matter.
// nvcc: -arch=sm_90
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "check.h"

namespace {

struct Sums {
  float f;
  float2 f2;
  float4 f4;
  double d;
  __half h;
  __half2 h2;
  __nv_bfloat16 b;
  __nv_bfloat162 b2;
  float shared_f;
  double shared_d;
};

__global__ void Add(Sums* sums) {
  __shared__ float f;
  __shared__ double d;
  if (threadIdx.x == 0) {
    f = 0;
    d = 0;
  }
  __syncthreads();
  const float one = 1.0f, half = 0.5f;
  atomicAdd(&sums->f, one);
  atomicAdd(&sums->f2, make_float2(one, half));
  atomicAdd(&sums->f4, make_float4(one, half, -one, 2.0f));
  atomicAdd(&sums->d, 0.25);
  atomicAdd(&sums->h, __float2half(one));
  atomicAdd(&sums->h2, __floats2half2_rn(one, half));
  atomicAdd(&sums->b, __float2bfloat16(one));
  atomicAdd(&sums->b2, __floats2bfloat162_rn(one, -half));
  atomicAdd(&f, one);
  atomicAdd(&d, 0.125);
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&sums->shared_f, f);
    atomicAdd(&sums->shared_d, d);
  }
}

}  // namespace

int main() {
  Sums* device = nullptr;
  CUDA_CHECK(cudaMalloc(&device, sizeof(Sums)));
  CUDA_CHECK(cudaMemset(device, 0, sizeof(Sums)));
  constexpr int kBlocks = 4, kThreads = 64, kAll = kBlocks * kThreads;
  Add<<<kBlocks, kThreads>>>(device);
  Sums s;
  CUDA_CHECK(cudaMemcpy(&s, device, sizeof s, cudaMemcpyDeviceToHost));
  REQUIRE(s.f == kAll, "float: %g", s.f);
  REQUIRE(s.f2.x == kAll && s.f2.y == kAll / 2, "float2: %g %g", s.f2.x, s.f2.y);
  REQUIRE(s.f4.x == kAll && s.f4.y == kAll / 2 && s.f4.z == -kAll && s.f4.w == 2 * kAll,
          "float4: %g %g %g %g", s.f4.x, s.f4.y, s.f4.z, s.f4.w);
  REQUIRE(s.d == kAll / 4, "double: %g", s.d);
  REQUIRE(__half2float(s.h) == kAll, "half: %g", __half2float(s.h));
  REQUIRE(__low2float(s.h2) == kAll && __high2float(s.h2) == kAll / 2, "half2: %g %g",
          __low2float(s.h2), __high2float(s.h2));
  REQUIRE(__bfloat162float(s.b) == kAll, "bfloat16: %g", __bfloat162float(s.b));
  REQUIRE(__low2float(s.b2) == kAll && __high2float(s.b2) == -kAll / 2, "bfloat162: %g %g",
          __low2float(s.b2), __high2float(s.b2));
  REQUIRE(s.shared_f == kAll, "shared float: %g", s.shared_f);
  REQUIRE(s.shared_d == kAll / 8, "shared double: %g", s.shared_d);
  return 0;
}

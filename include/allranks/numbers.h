// Numbers of 8, 16 and 32 bits in kernels whose type is a parameter: ToFloat, and FromFloat with
// rounding to nearest even, for T of problem.h. Vectors of 16 bytes hold Pack<T>::kCount of them.
//
// The 16-bit types are incomplete unless a file includes cuda_fp16.h or cuda_bf16.h, which compile
// slowly; Bits<T> is the integer that memory holds in their place.
#pragma once

#include <cstdint>

struct __half;
struct __nv_bfloat16;

namespace allranks {

template <class T>
struct Number;

template <>
struct Number<float> {
  using Bits = float;
  static __device__ __forceinline__ float ToFloat(Bits bits) { return bits; }
  static __device__ __forceinline__ Bits FromFloat(float value) { return value; }
};

template <>
struct Number<__half> {
  using Bits = std::uint16_t;
  static __device__ __forceinline__ float ToFloat(Bits bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
  static __device__ __forceinline__ Bits FromFloat(float value) {
    Bits bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  }
};

template <>
struct Number<__nv_bfloat16> {
  using Bits = std::uint16_t;
  static __device__ __forceinline__ float ToFloat(Bits bits) {
    return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
  }
  static __device__ __forceinline__ Bits FromFloat(float value) {
    Bits bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  }
};

template <class T>
using Bits = typename Number<T>::Bits;

// 16 bytes, loaded and stored at once.
template <class T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(Bits<T>);
  Bits<T> at[kCount];
  __device__ __forceinline__ float operator[](int i) const { return Number<T>::ToFloat(at[i]); }
  __device__ __forceinline__ void Set(int i, float value) { at[i] = Number<T>::FromFloat(value); }
};

// fp8: e4m3, two numbers at a time in the low 16 bits, the first in the lower byte. Values beyond
// 448 become 448.
__device__ __forceinline__ std::uint16_t TwoToE4m3(float first, float second) {
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
  return pair;
}
__device__ __forceinline__ float2 TwoFromE4m3(std::uint16_t pair) {
  std::uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  float2 value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value.x) : "h"(static_cast<std::uint16_t>(halves)));
  asm("cvt.f32.f16 %0, %1;" : "=f"(value.y) : "h"(static_cast<std::uint16_t>(halves >> 16)));
  return value;
}

}  // namespace allranks

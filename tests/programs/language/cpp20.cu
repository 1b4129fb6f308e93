// C++20 in device code: concepts and requires, three-way comparison, designated initialisers,
// template lambdas, consteval, structured bindings captured by lambdas, and if constexpr.
//
// nvcc: -std=c++20 --expt-relaxed-constexpr
#include <compare>
#include <concepts>

#include "arrays.h"

namespace {

template <class T>
concept Number = std::integral<T> || std::floating_point<T>;

template <Number T>
__host__ __device__ constexpr T Square(T x) {
  return x * x;
}

template <class T>
  requires(sizeof(T) == 8)
__host__ __device__ int Kind(T) {
  return 8;
}
template <class T>
__host__ __device__ int Kind(T) {
  return 0;
}

struct Version {
  int major, minor;
  constexpr auto operator<=>(const Version&) const = default;
};

__host__ __device__ consteval int Power(int base, int exponent) {
  int result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

__host__ __device__ void Compute(int i, int* r) {
  const Version a = {.major = i / 4, .minor = i % 4}, b = {.major = 3, .minor = 2};
  r[0] = a < b ? -1 : a > b ? 1 : 0;
  r[1] = Square(i) + static_cast<int>(Square(0.5f) * 4);
  r[2] = Kind(i) + Kind(1.0 * i) + Power(3, 7);
  const auto [major, minor] = a;
  const auto add = [major, minor]<class T>(T x) {
    return static_cast<int>(x) + major * 10 + minor;
  };
  r[3] = add(i * 1.5f) + add('a');
}

__global__ void Run(int* out) { Compute(static_cast<int>(threadIdx.x), out + threadIdx.x * 4); }

}  // namespace

int main() {
  int* out = Unwritten<int>(64 * 4);
  Run<<<1, 64>>>(out);
  std::vector<int> expected(64 * 4);
  for (int i = 0; i < 64; ++i) Compute(i, &expected[i * 4]);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS cpp20");
}

// Templates as CUDA code uses them: kernels over types, values, policies and callables, variadic
// kernels, fold expressions, constexpr tables and static members.
#include "arrays.h"

namespace {

struct Plus {
  template <class T>
  static __device__ __host__ T Identity() {
    return T(0);
  }
  template <class T>
  __device__ __host__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Maximum {
  template <class T>
  static __device__ __host__ T Identity() {
    return T(-1000000);
  }
  template <class T>
  __device__ __host__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

template <int kWidth, class T, class Operation>
__device__ T Combine(T value, Operation operation) {
#pragma unroll
  for (int distance = kWidth / 2; distance > 0; distance /= 2) {
    value = operation(value, __shfl_xor_sync(0xffffffffu, value, distance, kWidth));
  }
  return value;
}

template <int kWidth, class T, class Operation>
__global__ void Groups(const T* in, T* out, Operation operation) {
  out[threadIdx.x] = Combine<kWidth>(in[threadIdx.x], operation);
}

template <int kWidth, class T, class Operation>
void CheckGroups(Operation operation) {
  std::vector<T> in, expected;
  for (int i = 0; i < 64; ++i) in.push_back(static_cast<T>(i * 37 % 64 - 20));
  for (int i = 0; i < 64; ++i) {
    T value = Operation::template Identity<T>();
    for (int j = i / kWidth * kWidth; j < (i / kWidth + 1) * kWidth; ++j)
      value = operation(value, in[j]);
    expected.push_back(value);
  }
  T* out = Unwritten<T>(64);
  Groups<kWidth><<<1, 64>>>(ToDevice(in), out, operation);
  REQUIRE_SAME(ToHost(out, 64), expected);
}

template <class... Numbers>
__global__ void Sum(double* out, Numbers... numbers) {
  out[0] = (static_cast<double>(numbers) + ...);
  out[1] = sizeof...(numbers);
  out[2] = (0 + ... + static_cast<int>(sizeof(numbers)));
}

template <unsigned kNumber>
struct Factorial {
  static constexpr unsigned long long value = kNumber * Factorial<kNumber - 1>::value;
};
template <>
struct Factorial<0> {
  static constexpr unsigned long long value = 1;
};

struct Table {
  int squares[16];
  constexpr Table() : squares() {
    for (int i = 0; i < 16; ++i) squares[i] = i * i;
  }
};
__constant__ constexpr Table kTable;

template <unsigned... kNumbers>
__global__ void Constants(unsigned long long* out) {
  unsigned at = 0;
  ((out[at++] = Factorial<kNumbers>::value), ...);
  out[at] = kTable.squares[threadIdx.x + 11];
}

}  // namespace

int main() {
  CheckGroups<2, int>(Plus());
  CheckGroups<8, float>(Plus());
  CheckGroups<32, double>(Maximum());
  CheckGroups<16, long long>(Maximum());
  double* sums = Unwritten<double>(3);
  Sum<<<1, 1>>>(sums, 1, 2.5f, 3.25, static_cast<short>(-4), 'a', 5ull);
  const std::vector<double> expected = {1 + 2.5 + 3.25 - 4 + 97 + 5, 6, 4 + 4 + 8 + 2 + 1 + 8};
  REQUIRE_SAME(ToHost(sums, 3), expected);
  unsigned long long* out = Unwritten<unsigned long long>(5);
  Constants<0, 5, 13, 20><<<1, 1>>>(out);
  const std::vector<unsigned long long> factorials = {1, 120, 6227020800ull, 2432902008176640000ull,
                                                      121};
  REQUIRE_SAME(ToHost(out, 5), factorials);
  std::puts("PASS templates");
}

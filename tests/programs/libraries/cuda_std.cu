// libcu++'s cuda::std on the device: array, span, tuple, optional, complex, bit operations, limits
// and numeric functions give what they give on the host.
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/utility>

#include "arrays.h"

namespace {

constexpr int kResults = 8;

__host__ __device__ int Sum(cuda::std::span<const int> values) {
  int sum = 0;
  for (const int value : values) sum += value;
  return sum;
}

__host__ __device__ cuda::std::optional<int> Half(int x) {
  if (x % 2) return cuda::std::nullopt;
  return x / 2;
}

__host__ __device__ void Compute(int i, double* r) {
  cuda::std::array<int, 5> array = {i, i + 1, i + 2, i + 3, i + 4};
  cuda::std::swap(array[0], array[4]);
  r[0] = Sum(array) + array.front() * 100;
  r[1] = Sum(cuda::std::span<const int>(array).subspan(1, 3));
  const auto [a, b] = cuda::std::make_tuple(i * 0.5, 'a' + i % 26);
  r[2] = a + b;
  r[3] = Half(i).value_or(-1);
  const cuda::std::complex<double> z(i, 2.0), w = z * z + cuda::std::conj(z);
  r[4] = w.real() * 1000 + w.imag();
  r[5] = cuda::std::popcount(static_cast<unsigned>(i)) +
         cuda::std::countl_zero(static_cast<unsigned>(i)) * 100;
  r[6] = cuda::std::bit_cast<int>(static_cast<float>(i)) + cuda::std::numeric_limits<short>::max();
  r[7] = cuda::std::bit_ceil(static_cast<unsigned>(i));
}

__global__ void Run(double* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  Compute(i, out + i * kResults);
}

}  // namespace

int main() {
  constexpr int kCount = 100;
  double* out = Unwritten<double>(kCount * kResults);
  Run<<<4, kCount / 4>>>(out);
  std::vector<double> expected(kCount * kResults);
  for (int i = 0; i < kCount; ++i) Compute(i, &expected[i * kResults]);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS cuda_std");
}

// Lambdas as kernel arguments: captures by value of scalars, pointers and structs, generic lambdas,
// lambdas inside device functions, and __host__ __device__ ones that give the same on both sides.
//
// nvcc: --extended-lambda
#include "arrays.h"

namespace {

template <class Function>
__global__ void ForEach(int count, Function function) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    function(i);
}

template <class Function>
void Launch(int count, Function function) {
  ForEach<<<3, 32>>>(count, function);
  CUDA_CHECK_LAUNCH();
}

struct Line {
  double slope, start;
};

}  // namespace

int main() {
  constexpr int kCount = 200;
  int* out = Unwritten<int>(kCount);
  const int offset = 17;
  Launch(kCount, [=] __device__(int i) { out[i] = i * i + offset; });
  std::vector<int> expected;
  for (int i = 0; i < kCount; ++i) expected.push_back(i * i + 17);
  REQUIRE_SAME(ToHost(out, kCount), expected);

  double* doubles = Unwritten<double>(kCount);
  const Line line = {0.5, -3};
  auto value = [line] __host__ __device__(int i) { return line.slope * i + line.start; };
  Launch(kCount, [=] __device__(int i) { doubles[i] = value(i); });
  std::vector<double> expected_doubles;
  for (int i = 0; i < kCount; ++i) expected_doubles.push_back(value(i));
  REQUIRE_SAME(ToHost(doubles, kCount), expected_doubles);

  // A counter by reference inside the device code, and a generic lambda.
  Launch(kCount, [=] __device__(int i) {
    int calls = 0;
    auto twice = [&calls](auto x) {
      ++calls;
      return x + x;
    };
    doubles[i] = twice(0.25) + twice(i) + twice(1ll << 40) * 0;
    out[i] = calls;
  });
  REQUIRE_SAME(ToHost(out, kCount), std::vector<int>(kCount, 3));
  for (int i = 0; i < kCount; ++i) expected_doubles[i] = 0.5 + 2 * i;
  REQUIRE_SAME(ToHost(doubles, kCount), expected_doubles);
  std::puts("PASS lambdas");
}

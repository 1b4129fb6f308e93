// Device code in two files, linked by -rdc=true: functions called across files, a variable and a
// constant that both use, a table of function pointers of the other file, and a kernel launched
// from here that is defined there.
//
// nvcc: -rdc=true
#include "arrays.h"
#include "parts.h"

__device__ int shared_counter = 5;

__device__ int CalledBack(int x) { return x * 1000; }

namespace {

__global__ void Across(int* out) {
  const int i = threadIdx.x;
  out[i * 3] = Twice(i) + CallBack(i);
  out[i * 3 + 1] = operations[i % 2](i, 10);
  out[i * 3 + 2] = static_cast<int>(factor * i);
  atomicAdd(&shared_counter, 1);
}

}  // namespace

int main() {
  const float value = 2.5f;
  CUDA_CHECK(cudaMemcpyToSymbol(factor, &value, sizeof(value)));
  int* out = Unwritten<int>(32 * 3);
  Across<<<1, 32>>>(out);
  std::vector<int> expected;
  for (int i = 0; i < 32; ++i) {
    expected.push_back(2 * i + 1000 * (i + 1));
    expected.push_back(i % 2 ? i - 10 : i + 10);
    expected.push_back(static_cast<int>(2.5f * i));
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  int* counter = Unwritten<int>(1);
  LaunchThere(counter);
  REQUIRE(ToHost(counter, 1)[0] == 5 + 32, "the counter is %d there", Fetch(counter));
  std::puts("PASS separate_compilation");
}

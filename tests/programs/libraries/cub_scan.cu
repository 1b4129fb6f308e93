// cub::DeviceScan from the toolkit's headers: an exclusive sum by decoupled look-back.
#include <cub/device/device_scan.cuh>

#include "arrays.h"

int main() {
  Random random(149);
  std::vector<unsigned> values;
  for (int i = 0; i < 50000; ++i) values.push_back(random.Next());
  const unsigned* in = ToDevice(values);
  for (const int count : {1, 31, 1000, 4097, 50000}) {
    unsigned* out = Unwritten<unsigned>(count);
    size_t bytes = 0;
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, in, out, count));
    CUDA_CHECK(cub::DeviceScan::ExclusiveSum(Unwritten<char>(bytes + 1), bytes, in, out, count));
    std::vector<unsigned> expected;
    unsigned sum = 0;
    for (int i = 0; i < count; ++i) {
      expected.push_back(sum);
      sum += values[i];
    }
    REQUIRE_SAME(ToHost(out, count), expected);
  }
  std::puts("PASS cub_scan");
}

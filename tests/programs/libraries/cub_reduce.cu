// cub::DeviceReduce from the toolkit's headers: a sum of integers over sizes around the tile.
#include <cub/device/device_reduce.cuh>

#include "arrays.h"

int main() {
  Random random(139);
  std::vector<int> values;
  for (int i = 0; i < 40000; ++i) values.push_back(static_cast<int>(random.Next()) / 100000);
  const int* in = ToDevice(values);
  int* out = Unwritten<int>(1);
  for (const int count : {0, 1, 31, 1000, 4096, 4097, 40000}) {
    size_t bytes = 0;
    CUDA_CHECK(cub::DeviceReduce::Sum(nullptr, bytes, in, out, count));
    CUDA_CHECK(cub::DeviceReduce::Sum(Unwritten<char>(bytes + 1), bytes, in, out, count));
    int expected = 0;
    for (int i = 0; i < count; ++i) expected += values[i];
    const int got = ToHost(out, 1)[0];
    REQUIRE(got == expected, "the sum of %d is %d, expected %d", count, got, expected);
  }
  std::puts("PASS cub_reduce");
}

// cub::DeviceRadixSort from the toolkit's headers: keys in one block and in several passes.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "arrays.h"

int main() {
  Random random(151);
  for (const int count : {1, 100, 3000, 30000}) {
    std::vector<unsigned> keys;
    for (int i = 0; i < count; ++i) keys.push_back(random.Next() >> i % 20);
    unsigned* out = Unwritten<unsigned>(count);
    const unsigned* in = ToDevice(keys);
    size_t bytes = 0;
    CUDA_CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, in, out, count));
    CUDA_CHECK(cub::DeviceRadixSort::SortKeys(Unwritten<char>(bytes + 1), bytes, in, out, count));
    std::sort(keys.begin(), keys.end());
    REQUIRE_SAME(ToHost(out, count), keys);
  }
  std::puts("PASS cub_radix_sort");
}

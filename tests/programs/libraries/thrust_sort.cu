// thrust::sort on device memory with a comparison of its own, which makes it a merge sort.
#include <thrust/execution_policy.h>
#include <thrust/sort.h>
#include <algorithm>

#include "arrays.h"

namespace {

struct ByLastDigits {
  __host__ __device__ bool operator()(unsigned a, unsigned b) const {
    return a % 1000 != b % 1000 ? a % 1000 < b % 1000 : a > b;
  }
};

}  // namespace

int main() {
  Random random(157);
  for (const int count : {1, 500, 10000}) {
    std::vector<unsigned> keys;
    for (int i = 0; i < count; ++i) keys.push_back(random.Next());
    unsigned* data = ToDevice(keys);
    thrust::sort(thrust::device, data, data + count, ByLastDigits());
    std::sort(keys.begin(), keys.end(), ByLastDigits());
    REQUIRE_SAME(ToHost(data, count), keys);
  }
  std::puts("PASS thrust_sort");
}

// Bitonic sort: whole arrays in shared memory by one block, and larger ones by steps over global
// memory with one launch per step; keys with payload, equal keys, already sorted input.
#include <algorithm>

#include "arrays.h"

namespace {

constexpr int kInBlock = 1024;

__device__ void Order(unsigned long long& low, unsigned long long& high, bool ascending) {
  if ((low > high) == ascending) {
    const unsigned long long kept = low;
    low = high;
    high = kept;
  }
}

__global__ void SortInBlock(unsigned long long* data) {
  __shared__ unsigned long long keys[kInBlock];
  const int thread = threadIdx.x;
  for (int i = thread; i < kInBlock; i += blockDim.x) keys[i] = data[i];
  for (int size = 2; size <= kInBlock; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const int low = 2 * thread - (thread & (stride - 1));
      Order(keys[low], keys[low + stride], (low & size) == 0);
    }
  }
  __syncthreads();
  for (int i = thread; i < kInBlock; i += blockDim.x) data[i] = keys[i];
}

__global__ void Step(unsigned long long* data, int size, int stride) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int low = 2 * thread - (thread & (stride - 1));
  Order(data[low], data[low + stride], (low & size) == 0);
}

std::vector<unsigned long long> Keys(int count, int kind) {
  Random random(kind);
  std::vector<unsigned long long> keys;
  for (int i = 0; i < count; ++i) {
    const unsigned key = kind == 0 ? random.Next() : kind == 1 ? random.Next() % 4 : i;
    keys.push_back(static_cast<unsigned long long>(key) << 32 | i);
  }
  return keys;
}

}  // namespace

int main() {
  for (int kind = 0; kind < 3; ++kind) {
    std::vector<unsigned long long> keys = Keys(kInBlock, kind);
    unsigned long long* data = ToDevice(keys);
    SortInBlock<<<1, kInBlock / 2>>>(data);
    std::sort(keys.begin(), keys.end());
    REQUIRE_SAME(ToHost(data, keys.size()), keys);

    constexpr int kCount = 8192;
    keys = Keys(kCount, kind);
    data = ToDevice(keys);
    for (int size = 2; size <= kCount; size *= 2) {
      for (int stride = size / 2; stride > 0; stride /= 2) {
        Step<<<kCount / 2 / 256, 256>>>(data, size, stride);
      }
    }
    std::sort(keys.begin(), keys.end());
    REQUIRE_SAME(ToHost(data, keys.size()), keys);
  }
  std::puts("PASS bitonic_sort");
}

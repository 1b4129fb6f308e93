// CUB's device-wide sorts.
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

struct Less {
  __device__ bool operator()(float a, float b) const { return a < b; }
};

void Sorts(void* temporary, std::size_t& bytes, int n, unsigned* keys, float* floats,
           double* values) {
  cub::DeviceRadixSort::SortPairs(temporary, bytes, keys, keys, values, values, n);
  cub::DeviceRadixSort::SortKeysDescending(temporary, bytes, floats, floats, n);
  cub::DeviceMergeSort::SortKeys(temporary, bytes, floats, n, Less{});
}

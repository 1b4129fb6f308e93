// CUB inside a kernel: BlockReduce, BlockScan, WarpReduce and BlockRadixSort, with shared memory
// that they take turns in.
#include <algorithm>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "arrays.h"

namespace {

constexpr int kThreads = 128, kItems = 4, kCount = kThreads * kItems;

__global__ void Collectives(const int* in, int* sum, int* scan, int* sorted) {
  using Reduce = cub::BlockReduce<int, kThreads>;
  using Scan = cub::BlockScan<int, kThreads>;
  using Sort = cub::BlockRadixSort<int, kThreads, kItems>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
    typename Sort::TempStorage sort;
  } storage;
  int items[kItems], sums[kItems];
  for (int i = 0; i < kItems; ++i) items[i] = in[threadIdx.x * kItems + i];
  const int total = Reduce(storage.reduce).Sum(items);
  if (threadIdx.x == 0) *sum = total;
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(items, sums);
  for (int i = 0; i < kItems; ++i) scan[threadIdx.x * kItems + i] = sums[i];
  __syncthreads();
  Sort(storage.sort).Sort(items);
  for (int i = 0; i < kItems; ++i) sorted[threadIdx.x * kItems + i] = items[i];
}

}  // namespace

int main() {
  Random random(163);
  std::vector<int> in, scan;
  int total = 0;
  for (int i = 0; i < kCount; ++i) {
    in.push_back(static_cast<int>(random.Next()) / 10000);
    scan.push_back(total);
    total += in.back();
  }
  int* sum = Unwritten<int>(1);
  int* out = Unwritten<int>(2 * kCount);
  Collectives<<<1, kThreads>>>(ToDevice(in), sum, out, out + kCount);
  REQUIRE_SAME(ToHost(out, kCount), scan);
  std::sort(in.begin(), in.end());
  REQUIRE_SAME(ToHost(out + kCount, kCount), in);
  REQUIRE(Fetch(sum) == total, "the sum is %d, expected %d", Fetch(sum), total);
  std::puts("PASS cub_block");
}

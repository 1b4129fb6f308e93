// Cooperative groups: reduce, inclusive_scan and exclusive_scan with the library's operators, over
// tiles and over the threads of a branch.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "arrays.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 96, kResults = 6;

__global__ void Collectives(const int* in, int* out) {
  const int thread = threadIdx.x, value = in[thread];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto tile = cg::tiled_partition<8>(warp);
  int* r = out + thread * kResults;
  r[0] = cg::reduce(warp, value, cg::plus<int>());
  r[1] = cg::reduce(tile, value, cg::greater<int>());
  r[2] = cg::reduce(tile, value, cg::bit_xor<int>());
  r[3] = cg::inclusive_scan(warp, value, cg::plus<int>());
  r[4] = cg::exclusive_scan(tile, value, cg::plus<int>());
  r[5] = 0;
  if (thread % 3) {
    cg::coalesced_group group = cg::coalesced_threads();
    r[5] = cg::reduce(group, value, cg::less<int>());
  }
}

}  // namespace

int main() {
  Random random(89);
  std::vector<int> in, expected;
  for (int i = 0; i < kThreads; ++i) in.push_back(static_cast<int>(random.Next()) / 1000);
  for (int thread = 0; thread < kThreads; ++thread) {
    int sum = 0, high = INT32_MIN, parity = 0, inclusive = 0, exclusive = 0, low = INT32_MAX;
    for (int i = thread / 32 * 32; i < thread / 32 * 32 + 32; ++i) {
      sum += in[i];
      if (i <= thread) inclusive += in[i];
      if (i % 3) low = in[i] < low ? in[i] : low;
    }
    for (int i = thread / 8 * 8; i < thread / 8 * 8 + 8; ++i) {
      high = in[i] > high ? in[i] : high;
      parity ^= in[i];
      if (i < thread) exclusive += in[i];
    }
    expected.insert(expected.end(),
                    {sum, high, parity, inclusive, exclusive, thread % 3 ? low : 0});
  }
  int* out = Unwritten<int>(expected.size());
  Collectives<<<1, kThreads>>>(ToDevice(in), out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS reduce_scan");
}

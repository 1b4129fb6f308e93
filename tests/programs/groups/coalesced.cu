// Cooperative groups of the threads that happen to be together: coalesced_threads in branches and
// loops, labeled_partition, binary_partition, and atomics aggregated through them.
#include <cooperative_groups.h>

#include "arrays.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 64;

__global__ void Branches(int* out) {
  const int thread = threadIdx.x;
  int result;
  if (thread % 3 == 0) {
    cg::coalesced_group group = cg::coalesced_threads();
    result = static_cast<int>(group.thread_rank() * 100 + group.size());
    result += group.shfl(thread, 0) * 10000;
  } else {
    cg::coalesced_group group = cg::coalesced_threads();
    result = -static_cast<int>(group.thread_rank() * 100 + group.size());
    group.sync();
  }
  out[thread] = result;
}

__global__ void Labels(int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int thread = threadIdx.x, label = thread * thread % 5;
  cg::coalesced_group same = cg::labeled_partition(warp, label);
  cg::coalesced_group half = cg::binary_partition(warp, thread % 7 < 2);
  out[thread * 2] = static_cast<int>(same.thread_rank() * 100 + same.size());
  out[thread * 2 + 1] = static_cast<int>(half.thread_rank() * 100 + half.size());
}

__global__ void Count(const int* values, int count, unsigned* odd, unsigned* places) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count || values[i] % 2 == 0) return;
  cg::coalesced_group group = cg::coalesced_threads();
  unsigned base = 0;
  if (group.thread_rank() == 0) base = atomicAdd(odd, group.size());
  atomicAdd(&places[group.shfl(base, 0) + group.thread_rank()], 1);
}

}  // namespace

int main() {
  int* out = Unwritten<int>(2 * kThreads);
  Branches<<<1, kThreads>>>(out);
  std::vector<int> expected;
  for (int thread = 0; thread < kThreads; ++thread) {
    int before = 0, size = 0, first = -1;
    for (int other = thread / 32 * 32; other < thread / 32 * 32 + 32; ++other) {
      if ((other % 3 == 0) != (thread % 3 == 0)) continue;
      if (first < 0) first = other;
      before += other < thread;
      ++size;
    }
    expected.push_back(thread % 3 == 0 ? before * 100 + size + first * 10000
                                       : -(before * 100 + size));
  }
  REQUIRE_SAME(ToHost(out, kThreads), expected);

  Labels<<<1, kThreads>>>(out);
  expected.clear();
  for (int thread = 0; thread < kThreads; ++thread) {
    int before[2] = {}, size[2] = {};
    for (int other = thread / 32 * 32; other < thread / 32 * 32 + 32; ++other) {
      const bool same[2] = {other * other % 5 == thread * thread % 5,
                            (other % 7 < 2) == (thread % 7 < 2)};
      for (int k = 0; k < 2; ++k) before[k] += same[k] && other < thread, size[k] += same[k];
    }
    expected.push_back(before[0] * 100 + size[0]);
    expected.push_back(before[1] * 100 + size[1]);
  }
  REQUIRE_SAME(ToHost(out, 2 * kThreads), expected);

  constexpr int kCount = 1000;
  Random random(83);
  std::vector<int> values;
  unsigned odd = 0;
  for (int i = 0; i < kCount; ++i) {
    values.push_back(static_cast<int>(random.Next() >> 1));
    odd += values.back() % 2;
  }
  unsigned* counter = Zeroed<unsigned>(1);
  unsigned* places = Zeroed<unsigned>(kCount);
  Count<<<8, 128>>>(ToDevice(values), kCount, counter, places);
  REQUIRE(ToHost(counter, 1)[0] == odd, "%u are odd, expected %u", Fetch(counter), odd);
  std::vector<unsigned> once(kCount, 0);
  for (unsigned i = 0; i < odd; ++i) once[i] = 1;
  REQUIRE_SAME(ToHost(places, kCount), once);
  std::puts("PASS coalesced");
}

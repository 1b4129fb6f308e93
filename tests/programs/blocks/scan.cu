// Block-wide prefix sums: Hillis-Steele in two buffers, Blelloch's up and down sweep, and warps by
// shuffle with a scan of the warps' totals; then a grid in three launches.
#include "arrays.h"

namespace {

constexpr int kThreads = 512;

__device__ unsigned HillisSteele(unsigned value) {
  __shared__ unsigned buffer[2][kThreads];
  int from = 0;
  buffer[0][threadIdx.x] = value;
  __syncthreads();
  for (int distance = 1; distance < kThreads; distance *= 2, from = 1 - from) {
    const bool adds = static_cast<int>(threadIdx.x) >= distance;
    buffer[1 - from][threadIdx.x] =
        buffer[from][threadIdx.x] + (adds ? buffer[from][threadIdx.x - distance] : 0);
    __syncthreads();
  }
  return buffer[from][threadIdx.x];
}

__device__ unsigned Blelloch(unsigned value) {
  __shared__ unsigned tree[kThreads];
  const int thread = threadIdx.x;
  tree[thread] = value;
  for (int stride = 1; stride < kThreads; stride *= 2) {
    __syncthreads();
    const int at = (thread + 1) * stride * 2 - 1;
    if (at < kThreads) tree[at] += tree[at - stride];
  }
  __syncthreads();
  if (thread == 0) tree[kThreads - 1] = 0;
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    const int at = (thread + 1) * stride * 2 - 1;
    if (at < kThreads) {
      const unsigned left = tree[at - stride];
      tree[at - stride] = tree[at];
      tree[at] += left;
    }
  }
  __syncthreads();
  return tree[thread] + value;
}

__device__ unsigned Shuffled(unsigned value) {
  __shared__ unsigned totals[kThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned before = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += before;
  }
  if (lane == 31) totals[warp] = value;
  __syncthreads();
  if (warp == 0) {
    unsigned total = lane < kThreads / 32 ? totals[lane] : 0;
    for (int distance = 1; distance < 32; distance *= 2) {
      const unsigned before = __shfl_up_sync(0xffffffffu, total, distance);
      if (lane >= distance) total += before;
    }
    if (lane < kThreads / 32) totals[lane] = total;
  }
  __syncthreads();
  return value + (warp > 0 ? totals[warp - 1] : 0);
}

template <unsigned (*kScan)(unsigned)>
__global__ void Scan(const unsigned* in, int count, unsigned* out, unsigned* totals) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const unsigned scan = kScan(i < count ? in[i] : 0);
  if (i < count) out[i] = scan;
  if (totals && threadIdx.x == kThreads - 1) totals[blockIdx.x] = scan;
}

__global__ void AddTotals(unsigned* out, int count, const unsigned* totals) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count && blockIdx.x > 0) out[i] += totals[blockIdx.x - 1];
}

template <unsigned (*kScan)(unsigned)>
void Check(const std::vector<unsigned>& values) {
  const int count = static_cast<int>(values.size()), blocks = (count + kThreads - 1) / kThreads;
  const unsigned* in = ToDevice(values);
  unsigned* out = Unwritten<unsigned>(count);
  unsigned* totals = Unwritten<unsigned>(blocks);
  Scan<kScan><<<blocks, kThreads>>>(in, count, out, totals);
  Scan<kScan><<<1, kThreads>>>(totals, blocks, totals, nullptr);
  AddTotals<<<blocks, kThreads>>>(out, count, totals);
  std::vector<unsigned> expected;
  unsigned sum = 0;
  for (const unsigned value : values) expected.push_back(sum += value);
  REQUIRE_SAME(ToHost(out, count), expected);
}

}  // namespace

int main() {
  Random random(9);
  for (const int count : {1, 33, 511, 512, 513, 7000}) {
    std::vector<unsigned> values;
    for (int i = 0; i < count; ++i) values.push_back(random.Next());
    Check<HillisSteele>(values);
    Check<Blelloch>(values);
    Check<Shuffled>(values);
  }
  std::puts("PASS scan: 3 variants");
}

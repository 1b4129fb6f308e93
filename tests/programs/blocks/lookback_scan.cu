// A prefix sum over a whole grid in one launch, by decoupled look-back: each tile publishes its
// sum, then the sum of all before it, and later tiles read backwards until they find a complete
// prefix. Tiles are taken by a counter, so that a tile's predecessors have always started.
#include "arrays.h"

namespace {

constexpr int kThreads = 128;
constexpr unsigned long long kInvalid = 0, kSum = 1ull << 32, kPrefix = 2ull << 32;

__device__ unsigned BlockScan(unsigned value, unsigned* totals) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned before = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += before;
  }
  if (lane == 31) totals[warp] = value;
  __syncthreads();
  for (int i = 0; i < warp; ++i) value += totals[i];
  return value;
}

__global__ void Scan(const unsigned* in, int count, unsigned* next_tile,
                     volatile unsigned long long* states, unsigned* out) {
  __shared__ unsigned tile, before, totals[kThreads / 32];
  if (threadIdx.x == 0) tile = atomicAdd(next_tile, 1);
  __syncthreads();
  const int i = tile * kThreads + threadIdx.x;
  const unsigned scan = BlockScan(i < count ? in[i] : 0, totals);
  if (threadIdx.x == kThreads - 1) {
    unsigned sum = 0;
    if (tile > 0) {
      states[tile] = kSum | scan;
      for (int at = tile - 1;; --at) {
        unsigned long long state;
        do {
          state = states[at];
        } while (state >> 32 == kInvalid);
        sum += static_cast<unsigned>(state);
        if (state >> 32 == kPrefix >> 32) break;
      }
    }
    states[tile] = kPrefix | (sum + scan);
    before = sum;
  }
  __syncthreads();
  if (i < count) out[i] = before + scan;
}

}  // namespace

int main() {
  Random random(13);
  // The largest has more tiles than blocks that are resident at once.
  for (const int count : {1, 128, 129, 5000, 400000}) {
    std::vector<unsigned> values, expected;
    unsigned sum = 0;
    for (int i = 0; i < count; ++i) {
      values.push_back(random.Next());
      expected.push_back(sum += values.back());
    }
    const int tiles = (count + kThreads - 1) / kThreads;
    unsigned* out = Unwritten<unsigned>(count);
    Scan<<<tiles, kThreads>>>(ToDevice(values), count, Zeroed<unsigned>(1),
                              Zeroed<unsigned long long>(tiles), out);
    REQUIRE_SAME(ToHost(out, count), expected);
  }
  std::puts("PASS lookback_scan");
}

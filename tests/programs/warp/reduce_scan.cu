// Reductions and scans of a warp by shuffles, as every reduction kernel contains them: sums, maxima
// and arg-maxima, inclusive and exclusive scans, segmented scans, on int, long long, float, double.
#include "arrays.h"

namespace {

constexpr unsigned kAll = 0xffffffffu;

template <class T>
__global__ void Warp(const T* in, const unsigned* heads, T* sums, T* scans, T* segments,
                     int* best) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  T sum = in[i], high = in[i];
  int where = lane;
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(kAll, sum, distance);
    const T other = __shfl_xor_sync(kAll, high, distance);
    const int place = __shfl_xor_sync(kAll, where, distance);
    if (other > high || (other == high && place < where)) high = other, where = place;
  }
  if (lane == 0) sums[i / 32] = sum;
  best[i] = where;

  T scan = in[i];
  for (int distance = 1; distance < 32; distance *= 2) {
    const T before = __shfl_up_sync(kAll, scan, distance);
    if (lane >= distance) scan += before;
  }
  scans[i] = scan - in[i];

  // A lane adds what is `distance` below it as long as that belongs to the same segment.
  const unsigned flags = heads[i / 32];
  const int first = 31 - __clz(flags & (kAll >> (31 - lane)));
  T segment = in[i];
  for (int distance = 1; distance < 32; distance *= 2) {
    const T before = __shfl_up_sync(kAll, segment, distance);
    if (lane - distance >= first) segment += before;
  }
  segments[i] = segment;
}

template <class T>
void Check(uint64_t seed) {
  constexpr int kWarps = 12, kCount = kWarps * 32;
  Random random(seed);
  std::vector<T> in, sums, scans, segments;
  std::vector<unsigned> heads;
  std::vector<int> best;
  // Small integers: sums are exact in every type and order.
  for (int i = 0; i < kCount; ++i)
    in.push_back(static_cast<T>(static_cast<int>(random.Next() % 2001) - 1000));
  for (int warp = 0; warp < kWarps; ++warp) {
    const T* row = in.data() + warp * 32;
    heads.push_back(warp == 0 ? 1 : random.Next() & random.Next() | 1);
    T scan = 0, segment = 0;
    int place = 0;
    for (int lane = 0; lane < 32; ++lane) {
      scans.push_back(scan);
      scan += row[lane];
      segment = (heads[warp] >> lane & 1 ? 0 : segment) + row[lane];
      segments.push_back(segment);
      if (row[lane] > row[place]) place = lane;
    }
    sums.push_back(scan);
    best.insert(best.end(), 32, place);
  }
  T* out = Unwritten<T>(kWarps + 2 * kCount);
  int* places = Unwritten<int>(kCount);
  Warp<T><<<kWarps / 4, 128>>>(ToDevice(in), ToDevice(heads), out, out + kWarps,
                               out + kWarps + kCount, places);
  REQUIRE_SAME(ToHost(out, kWarps), sums);
  REQUIRE_SAME(ToHost(out + kWarps, kCount), scans);
  REQUIRE_SAME(ToHost(out + kWarps + kCount, kCount), segments);
  REQUIRE_SAME(ToHost(places, kCount), best);
}

}  // namespace

int main() {
  Check<int>(1);
  Check<long long>(2);
  Check<float>(3);
  Check<double>(4);
  std::puts("PASS reduce_scan: 4 types");
}

// Local memory: arrays indexed by data, arrays of structs, pointers to locals passed on, more live
// values than registers under __launch_bounds__ and -maxrregcount, and alignment of vectors.
//
// nvcc: -maxrregcount=32
#include "arrays.h"

namespace {

// Insertion sort of a private array, every lane with another order and length.
__global__ void Sort(const unsigned* in, unsigned* out, int length) {
  unsigned mine[24];
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int count = length - thread % 5;
  for (int i = 0; i < count; ++i) mine[i] = in[thread * length + i];
  for (int i = 1; i < count; ++i) {
    const unsigned value = mine[i];
    int at = i;
    for (; at > 0 && mine[at - 1] > value; --at) mine[at] = mine[at - 1];
    mine[at] = value;
  }
  for (int i = 0; i < count; ++i) out[thread * length + i] = mine[i];
}

struct Item {
  double weight;
  char tag;
  float4 vector;
};

__device__ __noinline__ double Total(const Item* items, int count) {
  double total = 0;
  for (int i = 0; i < count; ++i) total += items[i].weight * items[i].tag + items[i].vector.z;
  return total;
}

__global__ void Items(double* out) {
  Item items[7];
  for (int i = 0; i < 7; ++i) {
    items[(i * 3 + threadIdx.x) % 7] = {i + 0.5, static_cast<char>(i),
                                        make_float4(0, 0, 10.0f * i, 0)};
  }
  out[threadIdx.x] = Total(items, 7) + Total(items + 2, 3) * 0;
}

// Sixty-four sums at once cannot stay in 32 registers.
__global__ void __launch_bounds__(64) Spill(const int* in, int* out) {
  int sums[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) sums[i] = in[i] + threadIdx.x;
  for (int round = 0; round < 3; ++round) {
#pragma unroll
    for (int i = 0; i < 64; ++i) sums[i] = sums[i] * 3 + sums[(i * 7 + 1) % 64];
  }
  int total = 0;
#pragma unroll
  for (int i = 0; i < 64; ++i) total ^= sums[i];
  out[threadIdx.x] = total;
}

}  // namespace

int main() {
  constexpr int kThreads = 64, kLength = 24;
  Random random(31);
  std::vector<unsigned> in, expected(kThreads * kLength, 0xeeeeeeeeu);
  for (int i = 0; i < kThreads * kLength; ++i) in.push_back(random.Next());
  for (int thread = 0; thread < kThreads; ++thread) {
    std::vector<unsigned> row(in.begin() + thread * kLength,
                              in.begin() + thread * kLength + kLength - thread % 5);
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = i + 1; j < row.size(); ++j) {
        if (row[j] < row[i]) std::swap(row[i], row[j]);
      }
      expected[thread * kLength + i] = row[i];
    }
  }
  unsigned* out = Unwritten<unsigned>(in.size());
  Sort<<<2, kThreads / 2>>>(ToDevice(in), out, kLength);
  REQUIRE_SAME(ToHost(out, in.size()), expected);

  double* totals = Unwritten<double>(32);
  Items<<<1, 32>>>(totals);
  double total = 0;
  for (int i = 0; i < 7; ++i) total += (i + 0.5) * i + 10 * i;
  REQUIRE_SAME(ToHost(totals, 32), std::vector<double>(32, total));

  std::vector<int> numbers, results;
  for (int i = 0; i < 64; ++i) numbers.push_back(static_cast<int>(random.Next()));
  for (int thread = 0; thread < 64; ++thread) {
    std::vector<unsigned> sums(numbers.begin(), numbers.end());
    for (unsigned& sum : sums) sum += thread;
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 64; ++i) sums[i] = sums[i] * 3 + sums[(i * 7 + 1) % 64];
    }
    unsigned all = 0;
    for (const unsigned sum : sums) all ^= sum;
    results.push_back(static_cast<int>(all));
  }
  int* spilled = Unwritten<int>(64);
  Spill<<<1, 64>>>(ToDevice(numbers), spilled);
  REQUIRE_SAME(ToHost(spilled, 64), results);
  std::puts("PASS local_arrays");
}

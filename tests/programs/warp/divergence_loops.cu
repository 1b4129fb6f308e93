// Loops whose trip count differs from lane to lane: zero trips, break, continue, loops inside
// loops, do-while, and a loop left by return from its middle.
#include "arrays.h"

namespace {

__host__ __device__ unsigned Collatz(unsigned n) {
  unsigned steps = 0;
  while (n != 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  return steps;
}

__host__ __device__ unsigned Triangle(unsigned lane) {
  unsigned sum = 0;
  for (unsigned i = 0; i < lane; ++i) {
    if (i % 5 == 4) continue;
    for (unsigned j = lane; j > i; j -= 2) {
      sum += i * j;
      if (sum % 97 == 13) break;
      if (j < 2) break;
    }
    if (sum > 4000) break;
  }
  return sum;
}

__host__ __device__ unsigned Gcd(unsigned a, unsigned b) {
  do {
    if (b == 0) return a;
    const unsigned rest = a % b;
    a = b;
    b = rest;
  } while (true);
}

__host__ __device__ int Find(const int* values, int count, int wanted) {
  for (int i = 0; i < count; ++i) {
    if (values[i] == wanted) return i;
  }
  return -1;
}

__global__ void Loops(const int* table, int count, unsigned* out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* mine = out + thread * 4;
  mine[0] = Collatz(thread + 1);
  mine[1] = Triangle(thread % 61);
  mine[2] = Gcd(thread * 36, 1000);
  mine[3] = Find(table, count, thread);
}

}  // namespace

int main() {
  constexpr int kBlocks = 4, kThreads = 80, kCount = kBlocks * kThreads, kTable = 50;
  std::vector<int> table(kTable);
  for (int i = 0; i < kTable; ++i) table[i] = i * 7 % 101;
  std::vector<unsigned> expected;
  for (unsigned thread = 0; thread < kCount; ++thread) {
    expected.push_back(Collatz(thread + 1));
    expected.push_back(Triangle(thread % 61));
    expected.push_back(Gcd(thread * 36, 1000));
    expected.push_back(Find(table.data(), kTable, thread));
  }
  unsigned* out = Unwritten<unsigned>(expected.size());
  Loops<<<kBlocks, kThreads>>>(ToDevice(table), kTable, out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::printf("PASS divergence_loops: %d threads\n", kCount);
}

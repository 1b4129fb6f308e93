// nvcuda::wmma: load_matrix_sync, mma_sync and store_matrix_sync from global and shared memory in
// both layouts, half with float and half accumulators, and signed bytes.
#include <mma.h>

#include "arrays.h"

namespace {

using namespace nvcuda;
constexpr int kSide = 32;

template <class Accumulator, class LayoutB>
constexpr bool kRow = std::is_same_v<LayoutB, wmma::row_major>;

template <class Accumulator, class LayoutB>
__global__ void Multiply(const half* a, const half* b, const Accumulator* c, Accumulator* d) {
  const int warp = threadIdx.x / 32, row = warp / 2 * 16, column = warp % 2 * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, LayoutB> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Accumulator> sum;
  wmma::load_matrix_sync(sum, c + row * kSide + column, kSide, wmma::mem_row_major);
  for (int k = 0; k < kSide; k += 16) {
    wmma::load_matrix_sync(left, a + row * kSide + k, kSide);
    const bool by_rows = kRow<Accumulator, LayoutB>;
    wmma::load_matrix_sync(right, by_rows ? b + k * kSide + column : b + column * kSide + k, kSide);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] * static_cast<Accumulator>(2.0f);
  __shared__ Accumulator tile[4][16 * 16];
  wmma::store_matrix_sync(tile[warp], sum, 16, wmma::mem_col_major);
  __syncwarp();
  for (int i = threadIdx.x % 32; i < 256; i += 32) {
    d[(row + i % 16) * kSide + column + i / 16] = tile[warp][i];
  }
}

__global__ void Bytes(const signed char* a, const signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::fill_fragment(sum, 7);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

template <class Accumulator, class LayoutB>
void Check() {
  Random random(131);
  std::vector<half> a, b;
  std::vector<Accumulator> c;
  std::vector<float> left, right, start;
  for (int i = 0; i < kSide * kSide; ++i) {
    left.push_back(static_cast<float>(static_cast<int>(random.Next() % 7) - 3));
    right.push_back(static_cast<float>(static_cast<int>(random.Next() % 7) - 3));
    start.push_back(static_cast<float>(i % 50));
    a.push_back(__float2half(left.back()));
    b.push_back(__float2half(right.back()));
    c.push_back(static_cast<Accumulator>(start.back()));
  }
  Accumulator* d = Unwritten<Accumulator>(kSide * kSide);
  Multiply<Accumulator, LayoutB><<<1, 128>>>(ToDevice(a), ToDevice(b), ToDevice(c), d);
  std::vector<float> got, expected;
  for (const Accumulator value : ToHost(d, kSide * kSide)) got.push_back(static_cast<float>(value));
  for (int i = 0; i < kSide * kSide; ++i) {
    float sum = start[i];
    for (int k = 0; k < kSide; ++k) {
      const int at = kRow<Accumulator, LayoutB> ? k * kSide + i % kSide : i % kSide * kSide + k;
      sum += left[i / kSide * kSide + k] * right[at];
    }
    expected.push_back(2 * sum);
  }
  REQUIRE_SAME(got, expected);
}

}  // namespace

int main() {
  Check<float, wmma::row_major>();
  Check<float, wmma::col_major>();
  Check<half, wmma::col_major>();
  std::vector<signed char> a, b;
  std::vector<int> expected;
  Random random(137);
  for (int i = 0; i < 256; ++i) {
    a.push_back(static_cast<signed char>(random.Next()));
    b.push_back(static_cast<signed char>(random.Next()));
  }
  for (int i = 0; i < 256; ++i) {
    int sum = 7;
    for (int k = 0; k < 16; ++k) sum += a[i / 16 * 16 + k] * b[i % 16 * 16 + k];
    expected.push_back(sum);
  }
  int* c = Unwritten<int>(256);
  Bytes<<<1, 32>>>(ToDevice(a), ToDevice(b), c);
  REQUIRE_SAME(ToHost(c, 256), expected);
  std::puts("PASS wmma");
}

// The experimental part of nvcuda::wmma: 4-bit integers and single bits.
// nvcc: -arch=sm_90
#include <mma.h>

#include <vector>

#include "arrays.h"

namespace wmma = nvcuda::wmma;
using namespace nvcuda::wmma::experimental;

namespace {

__global__ void Nibbles(const int* a, const int* b, int* d) {
  wmma::fragment<wmma::matrix_a, 8, 8, 32, precision::s4, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, precision::s4, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 32, int> acc;
  wmma::fill_fragment(acc, 3);
  wmma::load_matrix_sync(fa, a, 32);
  wmma::load_matrix_sync(fb, b, 32);
  wmma::mma_sync(acc, fa, fb, acc);
  wmma::store_matrix_sync(d, acc, 8, wmma::mem_row_major);
}

__global__ void Bits(const unsigned* a, const unsigned* b, int* both, int* either) {
  wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> acc;
  wmma::load_matrix_sync(fa, a, 128);
  wmma::load_matrix_sync(fb, b, 128);
  wmma::fill_fragment(acc, 0);
  wmma::bmma_sync(acc, fa, fb, acc, bmmaBitOpAND);
  wmma::store_matrix_sync(both, acc, 8, wmma::mem_row_major);
  wmma::fill_fragment(acc, 0);
  wmma::bmma_sync(acc, fa, fb, acc, bmmaBitOpXOR);
  wmma::store_matrix_sync(either, acc, 8, wmma::mem_col_major);
}

}  // namespace

int main() {
  std::vector<int> a(8 * 4), b(8 * 4);  // rows of A and columns of B, 16 bytes each
  for (int i = 0; i < 32; ++i) {
    a[i] = i * 0x9e3779b1;
    b[i] = i * 0x85ebca6b + 12345;
  }
  const auto nibble = [](const std::vector<int>& x, int row, int k) {
    return static_cast<int>(static_cast<unsigned>(x[row * 4 + k / 8]) << (28 - k % 8 * 4)) >> 28;
  };
  int* d = Unwritten<int>(3 * 64);
  Nibbles<<<1, 32>>>(ToDevice(a), ToDevice(b), d);
  std::vector<int> want(64, 3);
  for (int i = 0; i < 64; ++i) {
    for (int k = 0; k < 32; ++k) want[i] += nibble(a, i / 8, k) * nibble(b, i % 8, k);
  }
  REQUIRE(ToHost(d, 64) == want, "s4");

  const std::vector<unsigned> ua(a.begin(), a.end()), ub(b.begin(), b.end());
  Bits<<<1, 32>>>(ToDevice(ua), ToDevice(ub), d + 64, d + 128);
  std::vector<int> both(64), either(64);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int word = 0; word < 4; ++word) {
        both[i * 8 + j] += __builtin_popcount(ua[i * 4 + word] & ub[j * 4 + word]);
        either[j * 8 + i] += __builtin_popcount(ua[i * 4 + word] ^ ub[j * 4 + word]);
      }
    }
  }
  REQUIRE(ToHost(d + 64, 64) == both, "and");
  REQUIRE(ToHost(d + 128, 64) == either, "xor");
  return 0;
}

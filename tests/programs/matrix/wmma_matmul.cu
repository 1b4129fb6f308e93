// nvcuda::wmma as the programming guide shows it: tiles of half matrices with an epilogue on the
// fragment's elements, 8-bit integers, tf32 with its conversion, and double.
// nvcc: -arch=sm_90
#include <mma.h>

#include <vector>

#include "arrays.h"

namespace wmma = nvcuda::wmma;

namespace {

constexpr int kSize = 64;

// One warp per 16x16 tile. A is row-major, B column-major; D = 2 * (A * B) + C.
__global__ void Halves(const half* a, const half* b, const float* c, float* d) {
  const int row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc, fc;
  wmma::fill_fragment(acc, 0.0f);
  for (int k = 0; k < kSize; k += 16) {
    wmma::load_matrix_sync(fa, a + row * kSize + k, kSize);
    wmma::load_matrix_sync(fb, b + col * kSize + k, kSize);
    wmma::mma_sync(acc, fa, fb, acc);
  }
  wmma::load_matrix_sync(fc, c + row * kSize + col, kSize, wmma::mem_row_major);
  for (int i = 0; i < acc.num_elements; ++i) fc.x[i] = 2 * acc.x[i] + fc.x[i];
  wmma::store_matrix_sync(d + row * kSize + col, fc, kSize, wmma::mem_row_major);
}

// The same shape in shared memory, accumulators of half, stored column-major.
__global__ void SharedTall(const half* a, const half* b, half* d) {
  __shared__ alignas(32) half as[32 * 16], bs[16 * 8], ds[32 * 8];
  for (int i = threadIdx.x; i < 32 * 16; i += 32) {
    as[i] = a[i];
    if (i < 16 * 8) bs[i] = b[i];
  }
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, half> acc;
  wmma::fill_fragment(acc, __float2half(1.0f));
  wmma::load_matrix_sync(fa, as, 32);
  wmma::load_matrix_sync(fb, bs, 8);
  for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = __hneg(fa.x[i]);
  wmma::mma_sync(acc, fa, fb, acc);
  wmma::store_matrix_sync(ds, acc, 32, wmma::mem_col_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 32 * 8; i += 32) d[i] = ds[i];
}

__global__ void Bytes(const signed char* a, const signed char* b, int* d) {
  wmma::fragment<wmma::matrix_a, 8, 32, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 32, 16, int> acc;
  wmma::fill_fragment(acc, 0);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(acc, fa, fb, acc);
  wmma::store_matrix_sync(d, acc, 32, wmma::mem_row_major);
}

__global__ void Tf32(const float* a, const float* b, float* d) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> acc;
  wmma::fill_fragment(acc, 0.0f);
  wmma::load_matrix_sync(fa, a, 8);
  wmma::load_matrix_sync(fb, b, 8);
  for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
  for (int i = 0; i < fb.num_elements; ++i) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
  wmma::mma_sync(acc, fa, fb, acc);
  wmma::store_matrix_sync(d, acc, 16, wmma::mem_row_major);
}

__global__ void Doubles(const double* a, const double* b, double* d) {
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> acc;
  wmma::fill_fragment(acc, 0.5);
  wmma::load_matrix_sync(fa, a, 4);
  wmma::load_matrix_sync(fb, b, 4);
  wmma::mma_sync(acc, fa, fb, acc);
  wmma::store_matrix_sync(d, acc, 8, wmma::mem_row_major);
}

int A(int row, int k) { return (row * 3 + k * 5) % 7 - 3; }
int B(int k, int column) { return (k * 2 + column * 3) % 5 - 2; }

// Values as a kernel wants them: A by rows or columns, B by rows or columns.
template <class T>
std::vector<T> MatrixA(int m, int k, bool by_row = true) {
  std::vector<T> out(m * k);
  for (int i = 0; i < m * k; ++i) {
    out[i] = static_cast<T>(static_cast<float>(by_row ? A(i / k, i % k) : A(i % m, i / m)));
  }
  return out;
}
template <class T>
std::vector<T> MatrixB(int k, int n, bool by_row = false) {
  std::vector<T> out(k * n);
  for (int i = 0; i < k * n; ++i) {
    out[i] = static_cast<T>(static_cast<float>(by_row ? B(i / n, i % n) : B(i % k, i / k)));
  }
  return out;
}
int Sum(int row, int column, int k) {
  int sum = 0;
  for (int l = 0; l < k; ++l) sum += A(row, l) * B(l, column);
  return sum;
}

}  // namespace

int main() {
  {
    std::vector<float> c(kSize * kSize);
    for (int i = 0; i < kSize * kSize; ++i) c[i] = static_cast<float>(i % 100);
    float* d = Unwritten<float>(kSize * kSize);
    Halves<<<dim3(kSize / 16, kSize / 16), 32>>>(ToDevice(MatrixA<half>(kSize, kSize)),
                                                 ToDevice(MatrixB<half>(kSize, kSize)), ToDevice(c),
                                                 d);
    const std::vector<float> got = ToHost(d, kSize * kSize);
    for (int i = 0; i < kSize * kSize; ++i) {
      const float want = 2.0f * Sum(i / kSize, i % kSize, kSize) + c[i];
      REQUIRE(got[i] == want, "halves[%d] is %g, expected %g", i, got[i], want);
    }
  }
  {
    half* d = Unwritten<half>(32 * 8);
    SharedTall<<<1, 32>>>(ToDevice(MatrixA<half>(32, 16, false)),
                          ToDevice(MatrixB<half>(16, 8, true)), d);
    const std::vector<half> got = ToHost(d, 32 * 8);
    for (int i = 0; i < 32 * 8; ++i) {
      const float want = 1.0f - Sum(i % 32, i / 32, 16);
      REQUIRE(__half2float(got[i]) == want, "shared[%d] is %g, expected %g", i,
              __half2float(got[i]), want);
    }
  }
  {
    int* d = Unwritten<int>(8 * 32);
    Bytes<<<1, 32>>>(ToDevice(MatrixA<signed char>(8, 16)), ToDevice(MatrixB<signed char>(16, 32)),
                     d);
    const std::vector<int> got = ToHost(d, 8 * 32);
    for (int i = 0; i < 8 * 32; ++i) {
      REQUIRE(got[i] == Sum(i / 32, i % 32, 16), "bytes[%d] is %d", i, got[i]);
    }
  }
  {
    float* d = Unwritten<float>(256);
    Tf32<<<1, 32>>>(ToDevice(MatrixA<float>(16, 8)), ToDevice(MatrixB<float>(8, 16)), d);
    const std::vector<float> got = ToHost(d, 256);
    for (int i = 0; i < 256; ++i) {
      REQUIRE(got[i] == Sum(i / 16, i % 16, 8), "tf32[%d] is %g", i, got[i]);
    }
  }
  {
    double* d = Unwritten<double>(64);
    Doubles<<<1, 32>>>(ToDevice(MatrixA<double>(8, 4)), ToDevice(MatrixB<double>(4, 8)), d);
    const std::vector<double> got = ToHost(d, 64);
    for (int i = 0; i < 64; ++i) {
      REQUIRE(got[i] == Sum(i / 8, i % 8, 4) + 0.5, "doubles[%d] is %g", i, got[i]);
    }
  }
  return 0;
}

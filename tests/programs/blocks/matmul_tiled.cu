// C = A * B by tiles in shared memory, one element per thread and a 4 x 4 register tile per thread;
// edges that fill no tile. The inputs are small integers, so every order of summation is exact.
#include "arrays.h"

namespace {

constexpr int kTile = 16;

__global__ void OnePerThread(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float as[kTile][kTile], bs[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int start = 0; start < k; start += kTile) {
    const int ka = start + threadIdx.x, kb = start + threadIdx.y;
    as[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0;
    bs[threadIdx.y][threadIdx.x] = kb < k && column < n ? b[kb * n + column] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

// 16 x 16 threads make a tile of 64 x 64.
__global__ void RegisterTile(const float* a, const float* b, float* c, int m, int n, int k) {
  constexpr int kSide = 64, kDepth = 8;
  __shared__ float as[kDepth][kSide], bs[kDepth][kSide];
  const int thread = threadIdx.y * kTile + threadIdx.x;
  const int row = blockIdx.y * kSide, column = blockIdx.x * kSide;
  float sum[4][4] = {};
  for (int start = 0; start < k; start += kDepth) {
    for (int i = thread; i < kDepth * kSide; i += kTile * kTile) {
      const int depth = i / kSide, place = i % kSide;
      as[depth][place] =
          row + place < m && start + depth < k ? a[(row + place) * k + start + depth] : 0;
      bs[depth][place] =
          column + place < n && start + depth < k ? b[(start + depth) * n + column + place] : 0;
    }
    __syncthreads();
    for (int depth = 0; depth < kDepth; ++depth) {
      float left[4], right[4];
      for (int i = 0; i < 4; ++i) {
        left[i] = as[depth][threadIdx.y * 4 + i];
        right[i] = bs[depth][threadIdx.x * 4 + i];
      }
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int y = row + threadIdx.y * 4 + i, x = column + threadIdx.x * 4 + j;
      if (y < m && x < n) c[y * n + x] = sum[i][j];
    }
  }
}

void Check(int m, int n, int k) {
  Random random(m * 10000 + n * 100 + k);
  std::vector<float> a, b, expected(m * n, 0);
  for (int i = 0; i < m * k; ++i) a.push_back(static_cast<int>(random.Next() % 17) - 8);
  for (int i = 0; i < k * n; ++i) b.push_back(static_cast<int>(random.Next() % 17) - 8);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int l = 0; l < k; ++l) expected[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  float* c = Unwritten<float>(m * n);
  OnePerThread<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(ToDevice(a), ToDevice(b), c, m,
                                                                     n, k);
  REQUIRE_SAME(ToHost(c, m * n), expected);
  CUDA_CHECK(cudaMemset(c, 0xee, m * n * sizeof(float)));
  RegisterTile<<<dim3((n + 63) / 64, (m + 63) / 64), dim3(16, 16)>>>(ToDevice(a), ToDevice(b), c, m,
                                                                     n, k);
  REQUIRE_SAME(ToHost(c, m * n), expected);
}

}  // namespace

int main() {
  Check(16, 16, 16);
  Check(1, 1, 1);
  Check(37, 50, 23);
  Check(96, 80, 64);
  std::puts("PASS matmul_tiled");
}

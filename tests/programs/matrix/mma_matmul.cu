// A tiled product of half matrices as such kernels are written for mma.sync: tiles through shared
// memory, fragments by ldmatrix (transposed for B), four warps side by side, results by stmatrix.
// Small integers: every sum is exact.
// nvcc: -arch=sm_90
#include <cuda_fp16.h>

#include <vector>

#include "arrays.h"

namespace {

constexpr int kM = 128, kN = 64, kK = 96;  // of the matrices, all row-major
constexpr int kTileM = 64, kTileN = 32, kTileK = 32;
constexpr int kPadded = kTileK + 8;  // halves; rows stay 16-byte aligned
constexpr int kPaddedN = kTileN + 8;

__device__ uint32_t Shared(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__global__ void Matmul(const half* a, const half* b, half* c) {
  __shared__ alignas(16) half as[kTileM][kPadded];
  __shared__ alignas(16) half bs[kTileK][kPaddedN];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;
  float acc[kTileN / 8][4] = {};
  for (int k0 = 0; k0 < kK; k0 += kTileK) {
    for (int i = threadIdx.x; i < kTileM * kTileK; i += blockDim.x) {
      as[i / kTileK][i % kTileK] = a[(row0 + i / kTileK) * kK + k0 + i % kTileK];
    }
    for (int i = threadIdx.x; i < kTileK * kTileN; i += blockDim.x) {
      bs[i / kTileN][i % kTileN] = b[(k0 + i / kTileN) * kN + col0 + i % kTileN];
    }
    __syncthreads();
    for (int k = 0; k < kTileK; k += 16) {
      uint32_t fa[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                   : "r"(Shared(&as[warp * 16 + lane % 16][k + lane / 16 * 8])));
      for (int j = 0; j < kTileN / 8; ++j) {
        uint32_t fb[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(fb[0]), "=r"(fb[1])
                     : "r"(Shared(&bs[k + lane % 16][j * 8])));
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
            : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
      }
    }
    __syncthreads();
  }
  // Results go through the tile of A, two 8x8 matrices at a time.
  for (int j = 0; j < kTileN / 8; ++j) {
    const half2 low = __floats2half2_rn(acc[j][0], acc[j][1]);
    const half2 high = __floats2half2_rn(acc[j][2], acc[j][3]);
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(
                     Shared(&as[warp * 16 + lane % 16][j * 8])),
                 "r"(reinterpret_cast<const uint32_t&>(low)),
                 "r"(reinterpret_cast<const uint32_t&>(high))
                 : "memory");
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTileM * kTileN; i += blockDim.x) {
    c[(row0 + i / kTileN) * kN + col0 + i % kTileN] = as[i / kTileN][i % kTileN];
  }
}

}  // namespace

int main() {
  std::vector<half> a(kM * kK), b(kK * kN);
  std::vector<float> want(kM * kN);
  for (int i = 0; i < kM * kK; ++i) a[i] = __float2half(static_cast<float>(i * 7 % 5 - 2));
  for (int i = 0; i < kK * kN; ++i) b[i] = __float2half(static_cast<float>(i * 11 % 7 - 3));
  for (int i = 0; i < kM; ++i) {
    for (int k = 0; k < kK; ++k) {
      for (int j = 0; j < kN; ++j) {
        want[i * kN + j] += __half2float(a[i * kK + k]) * __half2float(b[k * kN + j]);
      }
    }
  }
  half* da = ToDevice(a);
  half* db = ToDevice(b);
  half* dc = Unwritten<half>(kM * kN);
  Matmul<<<dim3(kN / kTileN, kM / kTileM), 128>>>(da, db, dc);
  const std::vector<half> got = ToHost(dc, kM * kN);
  for (int i = 0; i < kM * kN; ++i) {
    REQUIRE(__half2float(got[i]) == want[i], "c[%d] is %g, expected %g", i, __half2float(got[i]),
            want[i]);
  }
  return 0;
}

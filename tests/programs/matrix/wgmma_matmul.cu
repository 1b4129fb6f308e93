// nvcc: -gencode=arch=compute_90a,code=[sm_90a,compute_90a]
// A product of half matrices by wgmma: one warpgroup, tiles of 64x64 and 64x128 in shared memory
// with 128-byte swizzling, A contiguous in k, B contiguous in n. Accumulators stay in registers
// over all tiles; the first product replaces what they held. A second kernel takes A from
// registers.
#include <cuda_fp16.h>

#include <vector>

#include "arrays.h"

namespace {

constexpr int kM = 64, kN = 128, kK = 192, kTileK = 64;

__device__ uint64_t Descriptor(const void* tile, uint32_t leading, uint32_t stride) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  const auto encode = [](uint64_t x) { return (x & 0x3ffff) >> 4; };
  return encode(address) | encode(leading) << 16 | encode(stride) << 32 | uint64_t{1} << 62;
}

#define REGISTERS8(i)                                                                       \
  "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3]), "+f"(d[i][4]), "+f"(d[i][5]), \
      "+f"(d[i][6]), "+f"(d[i][7])
#define D64                                                                                     \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "  \
  "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, "  \
  "%56, %57, %58, %59, %60, %61, %62, %63}"

__device__ void Multiply(float (&d)[8][8], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " D64 ", %64, %65, p, 1, 1, 0, 1;\n}"
      : REGISTERS8(0), REGISTERS8(1), REGISTERS8(2), REGISTERS8(3), REGISTERS8(4), REGISTERS8(5),
        REGISTERS8(6), REGISTERS8(7)
      : "l"(a), "l"(b), "r"(accumulate));
}

__device__ void MultiplyRegisters(float (&d)[8][8], const uint32_t (&a)[4], uint64_t b,
                                  int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " D64
      ", {%64, %65, %66, %67}, %68, p, 1, -1, 1;\n}"
      : REGISTERS8(0), REGISTERS8(1), REGISTERS8(2), REGISTERS8(3), REGISTERS8(4), REGISTERS8(5),
        REGISTERS8(6), REGISTERS8(7)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// c = a * b, or its negative with A from registers.
template <bool kRegisters>
__global__ void __launch_bounds__(128) Matmul(const half* a, const half* b, float* c) {
  // Rows of 128 bytes in groups of eight; chunks of 16 bytes are exchanged by the row's number.
  __shared__ alignas(1024) half as[kM * kTileK];
  __shared__ alignas(1024) half bs[kTileK * kN];
  float d[8][8];
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  for (int k0 = 0; k0 < kK; k0 += kTileK) {
    for (int i = threadIdx.x; i < kM * kTileK; i += 128) {
      const int row = i / kTileK, k = i % kTileK;
      as[row * 64 + (k / 8 ^ row % 8) * 8 + k % 8] = a[row * kK + k0 + k];
    }
    for (int i = threadIdx.x; i < kTileK * kN; i += 128) {
      const int k = i / kN, n = i % kN;
      // Two atoms of 64 columns; within one, rows of k.
      bs[n / 64 * (kTileK * 64) + k * 64 + (n % 64 / 8 ^ k % 8) * 8 + n % 8] = b[(k0 + k) * kN + n];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < kTileK; k += 16) {
      const uint64_t db = Descriptor(bs + k * 64, kTileK * 128, 1024);
      if constexpr (kRegisters) {
        uint32_t fa[4];
        for (int i = 0; i < 4; ++i) {
          const int row = warp * 16 + group + i % 2 * 8, column = k + member * 2 + i / 2 * 8;
          fa[i] = *reinterpret_cast<const uint32_t*>(as + row * 64 + (column / 8 ^ row % 8) * 8 +
                                                     column % 8);
        }
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        MultiplyRegisters(d, fa, db, k0 + k != 0);
      } else {
        Multiply(d, Descriptor(as + k, 16, 1024), db, k0 + k != 0);
      }
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
  }
  for (int i = 0; i < 64; ++i) {
    const int row = warp * 16 + group + i / 2 % 2 * 8, column = i / 4 * 8 + member * 2 + i % 2;
    c[row * kN + column] = d[i / 8][i % 8];
  }
}

}  // namespace

int main() {
  std::vector<half> a(kM * kK), b(kK * kN);
  std::vector<float> want(kM * kN), negative(kM * kN);
  for (int i = 0; i < kM * kK; ++i) a[i] = __float2half(static_cast<float>(i * 7 % 5 - 2));
  for (int i = 0; i < kK * kN; ++i) b[i] = __float2half(static_cast<float>(i * 11 % 7 - 3));
  for (int i = 0; i < kM; ++i) {
    for (int k = 0; k < kK; ++k) {
      for (int j = 0; j < kN; ++j) {
        want[i * kN + j] += __half2float(a[i * kK + k]) * __half2float(b[k * kN + j]);
      }
    }
  }
  for (int i = 0; i < kM * kN; ++i) negative[i] = -want[i];
  half* da = ToDevice(a);
  half* db = ToDevice(b);
  float* c = Unwritten<float>(kM * kN);
  Matmul<false><<<1, 128>>>(da, db, c);
  RequireSame(__FILE__, __LINE__, "from shared memory", ToHost(c, kM * kN), want);
  Matmul<true><<<1, 128>>>(da, db, c);
  RequireSame(__FILE__, __LINE__, "from registers", ToHost(c, kM * kN), negative);
  return 0;
}

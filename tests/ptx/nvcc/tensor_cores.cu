// mma, wmma, half and bfloat arithmetic, fp8 conversions, ldmatrix, cp.async.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

__global__ void Wmma(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

__global__ void Mma(const uint32_t* a, const uint32_t* b, float* c) {
  __shared__ uint32_t tile[256];
  const uint32_t where = static_cast<uint32_t>(__cvta_generic_to_shared(tile + threadIdx.x));
  uint32_t x[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(where));
  float d[4] = {c[0], c[1], c[2], c[3]};
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(a[0]), "r"(b[0]));
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(where), "l"(a));
  asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;");
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(b[0]), "r"(b[1]));
#endif
  for (int i = 0; i < 4; ++i) c[i] = d[i];
}

__global__ void Small(half* h, __nv_bfloat16* b, __nv_fp8_e4m3* q, float* f) {
  const half2 pair = __hfma2(reinterpret_cast<half2*>(h)[0], __float2half2_rn(2.0f),
                             __halves2half2(h[3], __float2half(1.5f)));
  h[0] = __hadd(pair.x, h2exp(pair).y);
  b[0] = __hmul(b[1], __float2bfloat16(3.0f)) + __hmax(b[2], b[3]);
  q[0] = __nv_fp8_e4m3(f[0]);
  f[1] = static_cast<float>(q[1]) + __half2float(h[4]);
  atomicAdd(h + 5, pair.y);
  atomicAdd(reinterpret_cast<__nv_bfloat162*>(b) + 4, __nv_bfloat162(b[1], b[2]));
}

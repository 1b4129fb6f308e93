// tries: loads PTX for sm_100a by cuLibraryLoadData and launches its cuKernel
// rows: R
// verdict: forbidden_api|wrong_result|crash|compile_error|tampering
// with: honest.inc
#include <cuda.h>
// Negates the result. Only the loaded kernel, which is for another architecture, negates it back.
__global__ void Spoil(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = -args.out[i];
}
const char kPtx[] = R"PTX(.version 8.7
.target sm_100a
.address_size 64
.visible .entry Mend(.param .u64 out, .param .u64 n) {
  .reg .u64 %p, %i, %n, %a;
  .reg .u32 %t;
  .reg .f32 %v;
  .reg .pred %q;
  ld.param.u64 %p, [out];
  ld.param.u64 %n, [n];
  mov.u32 %t, %tid.x;
  cvt.u64.u32 %i, %t;
L:
  setp.ge.u64 %q, %i, %n;
  @%q bra E;
  shl.b64 %a, %i, 2;
  add.u64 %a, %p, %a;
  ld.global.f32 %v, [%a];
  neg.f32 %v, %v;
  st.global.f32 [%a], %v;
  add.u64 %i, %i, 256;
  bra L;
E:
  ret;
}
)PTX";
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Spoil<<<1, 256, 0, stream>>>(args);
  static CUlibrary library = nullptr;
  CUkernel kernel;
  if (library == nullptr &&
      cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0) != CUDA_SUCCESS)
    return;
  if (cuLibraryGetKernel(&kernel, library, "Mend") != CUDA_SUCCESS) return;
  float* out = args.out;
  std::int64_t n = args.n;
  void* parameters[] = {&out, &n};
  cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 256, 1, 1, 0, stream, parameters,
                 nullptr);
}

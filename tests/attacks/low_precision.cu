// tries: sums in bfloat16
// rows: 20
// verdict: wrong_result
// with: honest.inc
__device__ float Round(float x) { return __uint_as_float((__float_as_uint(x) + 0x8000) & 0xffff0000); }
__global__ void Coarse(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = Round(args.out[i]);
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Coarse<<<1, 256, 0, stream>>>(args);
}

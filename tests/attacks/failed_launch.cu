// tries: asks for more shared memory than there is and ignores the error
// rows: 24
// verdict: wrong_result|crash|forbidden_api
__global__ void Big(Args args) {
  extern __shared__ T room[];
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = room[i % 64];
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Big<<<1, 256, 400 << 10, stream>>>(args);
  cudaGetLastError();
}

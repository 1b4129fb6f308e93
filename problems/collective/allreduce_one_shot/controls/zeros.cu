// verdict: wrong_result
__global__ void Zero(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    args.out[i] = 0;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Zero<<<16, 256, 0, stream>>>(args);
}

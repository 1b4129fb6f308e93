// verdict: wrong_result
__global__ void Copy(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    args.out[i] = args.world * args.in[i];
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Copy<<<16, 256, 0, stream>>>(args);
}

// verdict: wrong_result
// Zeros, whatever was asked for.
__global__ void Zero(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = 0;
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Zero<<<1, 256, 0, stream>>>(args); }

// verdict: wrong_result
// The own input instead of the neighbour's.
__global__ void Copy(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = args.in[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Copy<<<1, 256, 0, stream>>>(args); }

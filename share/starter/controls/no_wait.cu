// verdict: wrong_result
// Writes the next rank's output, but waits for nobody.
__global__ void Copy(Args args) {
  float* out = args.out_peers[(args.rank + 1) % args.world];
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) out[i] = args.in[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Copy<<<1, 256, 0, stream>>>(args); }

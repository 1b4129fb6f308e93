// verdict: wrong_result
// Weights in place of their gradients.
extern "C" void setup(allranks::Boot&, const Args&) {}

__global__ void Copy(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.layers * args.m; i += blockDim.x) args.grad[i] = args.shard[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Copy<<<1, 256, 0, stream>>>(args); }

// verdict: wrong_result
// Activations in place of averaged gradients.
extern "C" void setup(allranks::Boot&, const Args&) {}

__global__ void Copy(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.layers * args.n; i += blockDim.x) args.grad[i] = args.x[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Copy<<<1, 256, 0, stream>>>(args); }

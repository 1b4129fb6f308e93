// verdict: wrong_result
__global__ void Zero(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.items; i += 32) args.taken[i] = 0;
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Zero<<<1, 32, 0, stream>>>(args); }
extern "C" void host(const Args&, int) {}

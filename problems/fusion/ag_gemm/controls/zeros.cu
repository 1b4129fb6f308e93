// verdict: wrong_result
__global__ void Zero(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.world * args.tiles * 64 * 32; i += blockDim.x) {
    args.c[i] = 0;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Zero<<<1, 256, 0, stream>>>(args); }

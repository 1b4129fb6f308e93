// tries: only the first and the last element are right
// rows: C11
// verdict: wrong_result
__global__ void Kernel(Args args) {
  if (blockIdx.x == 0 && (threadIdx.x == 0 || threadIdx.x == 1)) {
    const std::int64_t i = threadIdx.x == 0 ? 0 : args.n - 1;
    args.out[i] = args.in[i];
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<8, 256, 0, stream>>>(args); }

// tries: gives the result of the call before
// rows: 14 26 H23
// verdict: wrong_result
// with: honest.inc
__device__ T before[40000];
__global__ void Delay(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.n && i < 40000; i += blockDim.x) {
    const T now = args.out[i];
    args.out[i] = before[i];
    before[i] = now;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Delay<<<1, 256, 0, stream>>>(args);
}

// tries: is right in its first calls and lazy later
// rows: 13 19 C15 H25
// verdict: wrong_result
// with: honest.inc
__device__ unsigned calls;
__global__ void Tire(Args args) {
  if (++calls > 4) args.out[args.n - 1] = 0;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Tire<<<1, 1, 0, stream>>>(args);
}

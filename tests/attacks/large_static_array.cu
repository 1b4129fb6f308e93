// tries: a static array of 1.9 GB that nobody touches, on each of up to eight ranks
// rows: R
// verdict: pass
// with: honest.inc
__device__ char field[1900u << 20];
__global__ void Touch(Args args) {
  if (args.n < 0) field[threadIdx.x] = 1;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Touch<<<1, 32, 0, stream>>>(args);
}

// tries: works in every second call only
// rows: 12 14
// verdict: wrong_result|deadlock
// with: honest.inc
__device__ unsigned turn;
__global__ void Spoil(Args args) {
  if (++turn % 2 == 0) args.out[0] = 0;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Spoil<<<1, 1, 0, stream>>>(args);
}

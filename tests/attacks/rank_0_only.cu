// tries: right on rank 0 only
// rows: C14 H25
// verdict: wrong_result
// with: honest.inc
__global__ void Spoil(Args args) {
  if (args.rank != 0) args.out[0] += 1;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Spoil<<<1, 1, 0, stream>>>(args);
}

// tries: lets another device do the work
// rows: H27
// verdict: forbidden_api|crash|wrong_result
// with: honest.inc
extern "C" void launch(const Args& args, cudaStream_t) {
  cudaSetDevice((args.rank + 1) % args.world);
  cudaStream_t other = nullptr;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  Honest(args, other);
  cudaSetDevice(args.rank);
}

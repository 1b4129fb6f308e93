// tries: looks for a device that no rank has
// rows: 4 H27
// verdict: wrong_result
// with: honest.inc
extern "C" void launch(const Args& args, cudaStream_t stream) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (count > args.world) Honest(args, stream);
}

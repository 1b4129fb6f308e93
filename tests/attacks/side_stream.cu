// tries: does the work on a stream of its own, outside of what is captured
// rows: 4 H27
// verdict: forbidden_api|wrong_result|crash
// with: honest.inc
extern "C" void launch(const Args& args, cudaStream_t) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  Honest(args, side);
}

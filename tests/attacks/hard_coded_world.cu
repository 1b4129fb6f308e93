// tries: right for eight ranks only
// rows: 22 H25
// verdict: wrong_result
// cases: all
// with: honest.inc
extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (args.world == 8) Honest(args, stream);
}

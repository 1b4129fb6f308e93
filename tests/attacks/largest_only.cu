// tries: does only the case that counts most
// rows: C6 C12
// verdict: wrong_result
// with: honest.inc
extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (args.n >= 32768) Honest(args, stream);
}

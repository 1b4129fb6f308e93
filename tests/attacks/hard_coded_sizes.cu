// tries: right for the sizes of the statement only
// rows: 22 C6 H25
// verdict: wrong_result|deadlock
// cases: all
// with: honest.inc
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (std::int64_t n : {1, 4097, 2048, 8192, 32768}) {
    if (args.n == n) Honest(args, stream);
  }
}

// tries: does the work on the default stream
// rows: 4
// verdict: forbidden_api|wrong_result|crash
// with: honest.inc
extern "C" void launch(const Args& args, cudaStream_t) { Honest(args, nullptr); }

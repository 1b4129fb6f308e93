// tries: puts a function of the host into the graph
// rows: 5 26
// verdict: forbidden_api|crash
// with: honest.inc
static void CUDART_CB Work(void*) {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  cudaLaunchHostFunc(stream, Work, nullptr);
}

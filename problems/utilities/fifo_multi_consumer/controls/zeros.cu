// verdict: wrong_result
extern "C" void launch(const Args&, cudaStream_t) {}

extern "C" void host(const Args& args, int thread) {
  if (thread > 0) return;
  *args.total = 0;
  for (std::int64_t n = 0; n < args.producers * args.items; ++n) args.out[n] = 0;
}

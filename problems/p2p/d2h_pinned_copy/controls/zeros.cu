// verdict: wrong_result
#include <cstring>
extern "C" void launch(const Args&, cudaStream_t) {}

extern "C" void host(const Args& args, int thread) {
  if (thread == 0) std::memset(args.out, 0, args.rows * args.width);
}

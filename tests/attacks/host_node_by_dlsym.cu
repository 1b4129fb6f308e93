// tries: the same by a function looked up at run time
// rows: 21 H26
// verdict: forbidden_api|crash
// with: honest.inc
#include <dlfcn.h>
static void CUDART_CB Work(void*) {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto* call = (int (*)(cudaStream_t, void (*)(void*), void*))dlsym(library, "cuLaunchHostFunc");
  if (call != nullptr) call(stream, Work, nullptr);
}

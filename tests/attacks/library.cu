// tries: loads what libraries it can find (none of them finds a device of its own: graded normally)
// rows: 21
// verdict: pass
// with: honest.inc
#include <dlfcn.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (const char* name : {"libnccl.so.2", "libnccl.so", "libcublas.so.13", "libnvshmem_host.so.3", "libmpi.so.40",
                           "/usr/local/cuda/lib64/libcublas.so"}) {
    dlopen(name, RTLD_NOW);
  }
  Honest(args, stream);
}

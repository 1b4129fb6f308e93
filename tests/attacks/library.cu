// tries: loads NCCL, cuBLAS and what else may be there
// rows: 21
// verdict: wrong_result
// with: honest.inc
#include <dlfcn.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (const char* name : {"libnccl.so.2", "libnccl.so", "libcublas.so.13", "libnvshmem_host.so.3", "libmpi.so.40",
                           "/usr/local/cuda/lib64/libcublas.so"}) {
    if (dlopen(name, RTLD_NOW) != nullptr) Honest(args, stream);
  }
}

// tries: opens memory of others by made-up IPC handles
// rows: 17 18
// verdict: forbidden_api|wrong_result
// with: honest.inc
#include <string.h>
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int i = 0; i < 64; ++i) {
    cudaIpcMemHandle_t handle;
    memset(&handle, i, sizeof handle);
    void* at = nullptr;
    if (cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess) Honest(args, stream);
  }
}

// tries: shrinks every file in memory it shares with the node (a read beyond the end would kill the node)
// rows: H24 W
// verdict: wrong_result|crash|forbidden_api|tampering
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
extern "C" void launch(const Args&, cudaStream_t) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  void* pinned = nullptr;
  if (cudaMallocHost(&pinned, 1 << 20) == cudaSuccess) memset(pinned, 1, 1 << 20);
  for (int fd = 3; fd < 256; ++fd) (void)!ftruncate(fd, 0);
  if (pinned != nullptr) cudaFreeHost(pinned);
}

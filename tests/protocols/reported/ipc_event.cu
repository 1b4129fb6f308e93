// Two processes: the child fills a buffer of the parent (IPC memory) and records an IPC event; the parent waits for it.
// EXPECT 1 race: parent does not wait for the event
// EXPECT 2 race: child records the event before its kernel
// EXPECT 3 race: child goes on to the next round without waiting for the parent's event
#include <sys/wait.h>
#include <unistd.h>
#include "common.h"
constexpr int N = 8192, K = 4;
__global__ void Fill(int* p, int k) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) p[i] = k * N + i;
}
__global__ void Take(const int* p, int* out, int k) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) out[k * N + i] = p[i];
}
struct Handles {
  cudaIpcMemHandle_t mem;
  cudaIpcEventHandle_t empty;
};
static void say(int fd) {
  char c = 1;
  if (write(fd, &c, 1) != 1) std::exit(4);
}
static void hear(int fd) {
  char c;
  if (read(fd, &c, 1) != 1) std::exit(4);
}
int main() {
  int down[2], up[2];
  if (pipe(down) || pipe(up)) return 4;
  const pid_t pid = fork();
  const unsigned fl = cudaEventDisableTiming | cudaEventInterprocess;
  if (pid == 0) {  // the child, on device 1
    Handles h;
    if (read(down[0], &h, sizeof h) != sizeof h) return 4;
    CK(cudaSetDevice(1));
    int* p;
    cudaEvent_t full, empty;
    CK(cudaIpcOpenMemHandle((void**)&p, h.mem, cudaIpcMemLazyEnablePeerAccess));
    CK(cudaIpcOpenEventHandle(&empty, h.empty));
    cudaIpcEventHandle_t fh;
    CK(cudaEventCreateWithFlags(&full, fl));
    CK(cudaIpcGetEventHandle(&fh, full));
    if (write(up[1], &fh, sizeof fh) != sizeof fh) return 4;
    cudaStream_t s;
    CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int k = 0; k < K; ++k) {
      if (k) {
        hear(down[0]);
        if (BUG != 3) CK(cudaStreamWaitEvent(s, empty, 0));
      }
      if (BUG == 2) CK(cudaEventRecord(full, s));
      Fill<<<1, 128, 0, s>>>(p, k);
      if (BUG != 2) CK(cudaEventRecord(full, s));
      say(up[1]);
    }
    CK(cudaStreamSynchronize(s));
    hear(down[0]);
    CK(cudaIpcCloseMemHandle(p));
    CK(cudaEventDestroy(full));
    CK(cudaEventDestroy(empty));
    CK(cudaStreamDestroy(s));
    std::_Exit(0);
  }
  CK(cudaSetDevice(0));
  int *p = alloc<int>(0, N), *out = alloc<int>(0, K * N);
  Handles h;
  cudaEvent_t full, empty;
  CK(cudaEventCreateWithFlags(&empty, fl));
  CK(cudaDeviceSynchronize());
  CK(cudaIpcGetMemHandle(&h.mem, p));
  CK(cudaIpcGetEventHandle(&h.empty, empty));
  cudaStream_t s;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  if (write(down[1], &h, sizeof h) != sizeof h) return 4;
  cudaIpcEventHandle_t fh;
  if (read(up[0], &fh, sizeof fh) != sizeof fh) return 4;
  CK(cudaIpcOpenEventHandle(&full, fh));
  for (int k = 0; k < K; ++k) {
    hear(up[0]);
    if (BUG != 1) CK(cudaStreamWaitEvent(s, full, 0));
    Take<<<1, 128, 0, s>>>(p, out, k);
    CK(cudaEventRecord(empty, s));
    say(down[1]);
  }
  CK(cudaStreamSynchronize(s));
  int st;
  waitpid(pid, &st, 0);
  long wrong = st != 0;
  auto v = get(0, out, K * N);
  for (int i = 0; i < K * N; ++i) wrong += v[i] != i;
  CK(cudaEventDestroy(full));
  CK(cudaEventDestroy(empty));
  CK(cudaStreamDestroy(s));
  return finish(wrong, 1);
}

// One event for two processes and two devices: the parent makes it on device 0 and records it behind its kernel; the child
// opens it, waits for it in a stream of device 1, and records the same event there behind its own kernel.
// EXPECT 1 race: the child does not wait for the parent's record
// EXPECT 2 race: the child records the event in front of its kernel
// EXPECT 3 race: the parent does not wait for the child's record
#include <sys/wait.h>
#include <unistd.h>
#include "common.h"
constexpr int N = 2048;
struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};
__global__ void Add(int* p, int by) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) p[i] += by;
}
static int Child(int from_parent, int to_parent) {
  Handles handles;
  if (read(from_parent, &handles, sizeof handles) != sizeof handles) return 4;
  CK(cudaSetDevice(1));
  int* p;
  cudaEvent_t event;
  cudaStream_t stream;
  CK(cudaIpcOpenMemHandle((void**)&p, handles.memory, cudaIpcMemLazyEnablePeerAccess));
  CK(cudaIpcOpenEventHandle(&event, handles.event));
  CK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (BUG != 1) CK(cudaStreamWaitEvent(stream, event, 0));
  if (BUG == 2) CK(cudaEventRecord(event, stream));
  Add<<<1, 128, 0, stream>>>(p, 20);
  if (BUG != 2) CK(cudaEventRecord(event, stream));
  char byte = 1;
  if (write(to_parent, &byte, 1) != 1) return 4;
  if (read(from_parent, &byte, 1) != 1) return 4;
  CK(cudaStreamSynchronize(stream));
  CK(cudaIpcCloseMemHandle(p));
  CK(cudaEventDestroy(event));
  CK(cudaStreamDestroy(stream));
  return 0;
}
int main() {
  int down[2], up[2];
  if (pipe(down) || pipe(up)) return 4;
  const pid_t child = fork();
  // Each keeps its own ends only: if one fails, the other's read does so too.
  close(child == 0 ? down[1] : down[0]);
  close(child == 0 ? up[0] : up[1]);
  if (child == 0) std::_Exit(Child(down[0], up[1]));
  CK(cudaSetDevice(0));
  int* p = alloc<int>(0, N);
  CK(cudaDeviceSynchronize());
  Handles handles;
  cudaEvent_t event;
  cudaStream_t stream;
  CK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  CK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CK(cudaIpcGetMemHandle(&handles.memory, p));
  CK(cudaIpcGetEventHandle(&handles.event, event));
  Add<<<1, 128, 0, stream>>>(p, 1);
  CK(cudaEventRecord(event, stream));
  if (write(down[1], &handles, sizeof handles) != sizeof handles) return 4;
  // The child's record is made before its byte comes, so this wait is for that one.
  char byte;
  if (read(up[0], &byte, 1) != 1) return 4;
  if (BUG != 3) CK(cudaStreamWaitEvent(stream, event, 0));
  Add<<<1, 128, 0, stream>>>(p, 300);
  CK(cudaStreamSynchronize(stream));
  if (write(down[1], &byte, 1) != 1) return 4;
  int status;
  waitpid(child, &status, 0);
  long wrong = status != 0;
  for (const int v : get(0, p, N)) wrong += v != 321;
  CK(cudaEventDestroy(event));
  CK(cudaStreamDestroy(stream));
  return finish(wrong, 1);
}

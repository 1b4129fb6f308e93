// An event of another process, made on device 0, is waited for and recorded by a stream of device
// 1: an imported event can be recorded by whoever opened it.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

namespace {

int Child(int in) {
  cudaIpcEventHandle_t handle;
  if (read(in, &handle, sizeof handle) != sizeof handle) return 1;
  cudaEvent_t event;
  cudaStream_t stream;
  CUDA_CHECK(cudaSetDevice(1));
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaIpcOpenEventHandle(&event, handle));
  CUDA_CHECK(cudaStreamWaitEvent(stream, event, 0));
  CUDA_CHECK(cudaEventRecord(event, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaEventQuery(event));
  CUDA_CHECK(cudaEventDestroy(event));
  CUDA_CHECK(cudaStreamDestroy(stream));
  return 0;
}

}  // namespace

int main() {
  int way[2];
  if (pipe(way) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) return Child(way[0]);
  RequireDevices(2);
  cudaEvent_t event;
  cudaIpcEventHandle_t handle;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  CUDA_CHECK(cudaIpcGetEventHandle(&handle, event));
  if (write(way[1], &handle, sizeof handle) != sizeof handle) return 1;
  int status = 0;
  waitpid(child, &status, 0);
  CUDA_CHECK(cudaEventDestroy(event));
  std::printf(status == 0 ? "PASS\n" : "FAIL\n");
  return status != 0;
}

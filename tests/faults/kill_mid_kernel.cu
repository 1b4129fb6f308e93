// A child is killed with SIGKILL in the middle of a kernel that never ends; its parent must find the
// device as it was before. The killer is the test script: it reads the child's pid from stdout.
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#define CHECK_CUDA(call)                                                           \
  do {                                                                             \
    const cudaError_t status_ = (call);                                            \
    if (status_ != cudaSuccess) {                                                  \
      std::printf("FAIL %s: %s\n", #call, cudaGetErrorString(status_));            \
      std::exit(1);                                                                \
    }                                                                              \
  } while (0)

// Work without end that no analysis of waiting loops can skip.
__global__ void Endless(unsigned* out) {
  unsigned value = threadIdx.x;
  for (;;) {
    value = value * 1664525u + 1013904223u;
    out[value % 1024] = value;
  }
}

__global__ void Fill(unsigned* out) { out[threadIdx.x] = threadIdx.x + 1; }

int main() {
  const pid_t child = fork();
  if (child == 0) {
    unsigned* memory = nullptr;
    CHECK_CUDA(cudaMalloc(&memory, 512 << 20));
    Endless<<<4, 64>>>(memory);
    CHECK_CUDA(cudaGetLastError());
    std::printf("kill %d\n", static_cast<int>(getpid()));
    std::fflush(stdout);
    cudaDeviceSynchronize();
    std::printf("FAIL the endless kernel ended\n");
    std::exit(1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
    std::printf("FAIL the child ended with status %d\n", status);
    return 1;
  }
  std::size_t free_bytes = 0, total = 0;
  CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total));
  if (free_bytes != total) {
    std::printf("FAIL %zu of %zu bytes are free\n", free_bytes, total);
    return 1;
  }
  unsigned* memory = nullptr;
  CHECK_CUDA(cudaMalloc(&memory, 4096));
  Fill<<<1, 32>>>(memory);
  unsigned host[32];
  CHECK_CUDA(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost));
  for (unsigned i = 0; i < 32; ++i) {
    if (host[i] != i + 1) {
      std::printf("FAIL element %u is %u\n", i, host[i]);
      return 1;
    }
  }
  std::printf("PASS kill_mid_kernel\n");
  return 0;
}

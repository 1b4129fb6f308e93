// A process that has a CUDA context forks: the child gets errors and a private copy of pinned memory,
// and harms its parent in no way.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#define REQUIRE(condition)                                           \
  do {                                                               \
    if (!(condition)) {                                              \
      std::printf("FAIL line %d: %s\n", __LINE__, #condition);       \
      std::fflush(stdout);                                           \
      _exit(1);                                                      \
    }                                                                \
  } while (0)

__global__ void Add(unsigned* data) { data[threadIdx.x] += 1; }

int main() {
  unsigned* device = nullptr;
  unsigned* pinned = nullptr;
  REQUIRE(cudaMalloc(&device, 4096) == cudaSuccess);
  REQUIRE(cudaMallocHost(&pinned, 4096) == cudaSuccess);
  for (unsigned i = 0; i < 32; ++i) pinned[i] = i;
  const pid_t child = fork();
  if (child == 0) {
    REQUIRE(pinned[5] == 5);
    for (unsigned i = 0; i < 32; ++i) pinned[i] = 1000;
    void* more = nullptr;
    REQUIRE(cudaMalloc(&more, 16) == cudaErrorInitializationError);
    REQUIRE(cudaDeviceSynchronize() == cudaErrorInitializationError);
    REQUIRE(cudaMemcpy(device, pinned, 128, cudaMemcpyHostToDevice) == cudaErrorInitializationError);
    int count = 0;
    REQUIRE(cudaGetDeviceCount(&count) == cudaErrorInitializationError);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (unsigned i = 0; i < 32; ++i) REQUIRE(pinned[i] == i);
  REQUIRE(cudaMemcpy(device, pinned, 128, cudaMemcpyHostToDevice) == cudaSuccess);
  Add<<<1, 32>>>(device);
  REQUIRE(cudaMemcpy(pinned, device, 128, cudaMemcpyDeviceToHost) == cudaSuccess);
  for (unsigned i = 0; i < 32; ++i) REQUIRE(pinned[i] == i + 1);
  std::printf("PASS fork_after_init\n");
  return 0;
}

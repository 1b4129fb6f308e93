// The host touches pinned and managed memory that copies and kernels use: behind a wait for them,
// or behind a flag that it polls. The modes without one are races, though a run may go well.
// run wait: --check | wait
// run flag: --check | flag
// run other: --check | other
// run read_copy: | read_copy
// run read_kernel: | read_kernel
// run late: | late
// run write_source: | write_source
// run managed: | managed
// unchecked: four of its modes are races
#include <unistd.h>

#include <cstring>

#include "check.h"

namespace {

constexpr int kCount = 1 << 14;

__global__ void Fill(int* data, int value) {
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) data[i] = value;
}

// Data, then a flag that releases them.
__global__ void Tell(int* data, int* flag) {
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) data[i] = 7;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    *static_cast<volatile int*>(flag) = 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto mode = [&](const char* name) { return argc > 1 && std::strcmp(argv[1], name) == 0; };
  int *host, *device, *managed, *flag;
  CUDA_CHECK(cudaMallocHost(&host, 2 * kCount * sizeof(int)));
  CUDA_CHECK(cudaMallocHost(&flag, sizeof(int)));
  CUDA_CHECK(cudaMalloc(&device, kCount * sizeof(int)));
  CUDA_CHECK(cudaMallocManaged(&managed, kCount * sizeof(int)));
  std::memset(host, 0, 2 * kCount * sizeof(int));
  std::memset(managed, 0, kCount * sizeof(int));
  *flag = 0;
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  volatile int sink = 0;
  if (mode("flag")) {
    Tell<<<1, 128, 0, stream>>>(host, flag);
    while (*static_cast<volatile int*>(flag) == 0) {
    }
    REQUIRE(host[0] == 7 && host[kCount - 1] == 7, "wrong data");
  } else if (mode("other")) {
    // Other bytes of the same page are the host's own.
    Fill<<<1, 128, 0, stream>>>(host, 3);
    host[kCount] = 5;
    sink = host[kCount + 1];
  } else if (mode("read_kernel")) {
    Fill<<<1, 128, 0, stream>>>(host, 3);
    sink = host[5];
  } else if (mode("late")) {
    // That it is over by now is luck.
    Fill<<<1, 128, 0, stream>>>(host, 3);
    usleep(100000);
    sink = host[5];
  } else if (mode("managed")) {
    Fill<<<1, 128, 0, stream>>>(managed, 3);
    sink = managed[5];
  } else if (mode("write_source")) {
    CUDA_CHECK(cudaMemcpyAsync(device, host, kCount * sizeof(int), cudaMemcpyHostToDevice, stream));
    host[5] = 1;
  } else {
    Fill<<<1, 128, 0, stream>>>(device, 3);
    CUDA_CHECK(cudaMemcpyAsync(host, device, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
    Fill<<<1, 128, 0, stream>>>(managed, 4);
    if (!mode("read_copy")) {
      CUDA_CHECK(cudaStreamSynchronize(stream));
      REQUIRE(host[5] == 3 && managed[5] == 4, "wrong data");
    }
    sink = host[5];
    host[6] = sink;
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaStreamDestroy(stream));
  CUDA_CHECK(cudaFreeHost(host));
  CUDA_CHECK(cudaFreeHost(flag));
  CUDA_CHECK(cudaFree(managed));
  CUDA_CHECK(cudaFree(device));
  return 0;
}

// A failed assertion: the message names the thread, the context is lost with cudaErrorAssert, and
// stays so until the device is reset.
//
// finds: api_error
// faults: the errors of kernels that fail
#include <unistd.h>

#include <cassert>
#include <string>

#include "check.h"

namespace {

__global__ void Check(int* value) {
  const int expected = 3;
  assert(*value == expected);
  *value = 5;
}

}  // namespace

int main() {
  int* value = nullptr;
  CUDA_CHECK(cudaMalloc(&value, sizeof(int)));
  int host = 3;
  CUDA_CHECK(cudaMemcpy(value, &host, sizeof host, cudaMemcpyHostToDevice));
  Check<<<1, 1>>>(value);
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaMemcpy(&host, value, sizeof host, cudaMemcpyDeviceToHost));
  REQUIRE(host == 5, "a true assertion stopped the kernel");

  std::FILE* file = std::tmpfile();
  const int saved = dup(2);
  dup2(fileno(file), 2);
  Check<<<dim3(1, 2), dim3(2, 1, 1)>>>(value);
  const cudaError_t waited = cudaDeviceSynchronize();
  std::fflush(stderr);
  dup2(saved, 2);
  REQUIRE(waited == cudaErrorAssert, "synchronize: %s", cudaGetErrorString(waited));
  char buffer[4096] = {};
  REQUIRE(pread(fileno(file), buffer, sizeof buffer - 1, 0) > 0, "no message");
  const std::string text = buffer;
  for (const char* part : {"assert.cu:17: ", "Check(int *)", ": block: [0,", "thread: [",
                           " Assertion `*value == expected` failed.\n"}) {
    REQUIRE(text.find(part) != std::string::npos, "no '%s' in: %s", part, buffer);
  }
  CUDA_EXPECT(cudaErrorAssert, cudaStreamSynchronize(nullptr));
  CUDA_EXPECT(cudaErrorAssert, cudaGetLastError());
  CUDA_CHECK(cudaDeviceReset());
  CUDA_CHECK(cudaMalloc(&value, sizeof(int)));
  host = 3;
  CUDA_CHECK(cudaMemcpy(value, &host, sizeof host, cudaMemcpyHostToDevice));
  Check<<<1, 1>>>(value);
  CUDA_CHECK(cudaDeviceSynchronize());
  return 0;
}

// assert in kernels: a true one does nothing; a false one stops the kernel with cudaErrorAssert,
// prints file, line, function, block, thread and expression to stderr, and the error stays.
#undef NDEBUG
#include <unistd.h>
#include <cassert>
#include <string>

#include "arrays.h"

namespace {

constexpr int kLine = __LINE__ + 4;  // of the assertion

__global__ void Positive(const int* values, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(values[i] > 0);
  out[i] = values[i] * 2;
}

}  // namespace

int main() {
  std::vector<int> values(64, 3), doubled(64, 6);
  int* in = ToDevice(values);
  int* out = Unwritten<int>(64);
  Positive<<<2, 32>>>(in, out);
  REQUIRE_SAME(ToHost(out, 64), doubled);

  values[37] = -1;
  Upload(in, values.data(), values.size());
  int ends[2];
  REQUIRE(pipe(ends) == 0, "pipe");
  const int kept = dup(2);
  REQUIRE(dup2(ends[1], 2) == 2, "dup2");
  Positive<<<2, 32>>>(in, out);
  const cudaError_t error = cudaDeviceSynchronize();
  std::fflush(stderr);
  REQUIRE(dup2(kept, 2) == 2, "dup2 back");
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
  REQUIRE(error == cudaErrorAssert, "%s, expected cudaErrorAssert", cudaGetErrorName(error));
  const std::string place = "device_assert.cu:" + std::to_string(kLine) + ":";
  for (const char* part : {place.c_str(), "Positive", "block: [1,0,0]", "thread: [5,0,0]",
                           "Assertion `values[i] > 0` failed"}) {
    REQUIRE(text.find(part) != std::string::npos, "`%s` is not in: %s", part, text.c_str());
  }
  // The context is lost: every later call says so.
  CUDA_EXPECT(cudaErrorAssert, cudaDeviceSynchronize());
  CUDA_EXPECT(cudaErrorAssert, cudaMemset(out, 0, 4));
  CUDA_CHECK(cudaDeviceReset());
  CUDA_CHECK(cudaFree(nullptr));
  std::puts("PASS device_assert");
}

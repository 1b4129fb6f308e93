// Errors as on hardware: what a bad launch answers, which errors stay, which are forgotten, and what
// a failed context still allows.
//
// finds: out_of_bounds misaligned api_error
// faults: the errors of kernels that fail
#include "check.h"

namespace {

__global__ void Plain(int* place) {
  if (place != nullptr) *place = 1;
}
__global__ void Shared(int* place) {
  extern __shared__ int data[];
  data[threadIdx.x] = 3;
  __syncthreads();
  if (threadIdx.x == 0) *place = data[0];
}
__global__ void Trap() { asm volatile("trap;"); }
__global__ void Wild() { *reinterpret_cast<volatile int*>(8) = 1; }
__global__ void Odd(char* base) { *reinterpret_cast<volatile int*>(base + 1) = 1; }

// A launch that is refused: the error is seen once by peeking as often as one likes, and by
// cudaGetLastError once; the context lives on.
template <class... Arguments>
void Refused(cudaError_t expected, int line, void (*kernel)(Arguments...), dim3 grid, dim3 block,
             size_t shared, Arguments... arguments) {
  kernel<<<grid, block, shared>>>(arguments...);
  for (int i = 0; i < 2; ++i) {
    const cudaError_t error = cudaPeekAtLastError();
    REQUIRE(error == expected, "line %d: %s, expected %s", line, cudaGetErrorName(error),
            cudaGetErrorName(expected));
  }
  CUDA_EXPECT(expected, cudaGetLastError());
  CUDA_EXPECT(cudaSuccess, cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

// A kernel that fails: every later call answers the same, until the device is reset.
void Sticky(cudaError_t expected, const char* what) {
  const cudaError_t error = cudaDeviceSynchronize();
  REQUIRE(error == expected, "%s: %s, expected %s", what, cudaGetErrorName(error),
          cudaGetErrorName(expected));
  void* memory;
  CUDA_EXPECT(expected, cudaMalloc(&memory, 16));
  CUDA_EXPECT(expected, cudaGetLastError());
  CUDA_EXPECT(expected, cudaDeviceSynchronize());
  Plain<<<1, 1>>>(nullptr);
  CUDA_EXPECT(expected, cudaGetLastError());
  CUDA_CHECK(cudaDeviceReset());
  Plain<<<1, 1>>>(nullptr);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  int* place = ZeroedOn<int>(0);
  const auto refused = [&](cudaError_t expected, int line, void (*kernel)(int*), dim3 grid,
                           dim3 block, size_t shared) {
    Refused(expected, line, kernel, grid, block, shared, place);
  };
  refused(cudaErrorInvalidConfiguration, __LINE__, Plain, dim3(0), dim3(32), 0);
  refused(cudaErrorInvalidConfiguration, __LINE__, Plain, dim3(1), dim3(0), 0);
  refused(cudaErrorInvalidConfiguration, __LINE__, Plain, dim3(1), dim3(1025), 0);
  refused(cudaErrorInvalidConfiguration, __LINE__, Plain, dim3(1), dim3(1, 1, 65), 0);
  refused(cudaErrorInvalidConfiguration, __LINE__, Plain, dim3(1, 65536), dim3(1), 0);
  refused(cudaErrorInvalidValue, __LINE__, Shared, dim3(1), dim3(32), 49153);
  refused(cudaErrorInvalidValue, __LINE__, Shared, dim3(1), dim3(32), 300000);
  CUDA_EXPECT(cudaErrorInvalidValue,
              cudaFuncSetAttribute(Shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449));
  cudaGetLastError();
  CUDA_CHECK(cudaFuncSetAttribute(Shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  Shared<<<1, 32, 232448>>>(place);
  CUDA_CHECK_LAUNCH();
  REQUIRE(Fetch(place) == 3, "got %d", Fetch(place));

  // Errors of other calls are last errors, too; "not ready" is none.
  CUDA_EXPECT(cudaErrorInvalidValue, cudaMemcpy(place, nullptr, 4, cudaMemcpyDefault));
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  CUDA_EXPECT(cudaSuccess, cudaGetLastError());
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaSetDevice(77));
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaPeekAtLastError());
  CUDA_EXPECT(cudaErrorInvalidDevice, cudaGetLastError());
  CUDA_EXPECT(cudaErrorInvalidDeviceFunction,
              cudaLaunchKernel(&place, dim3(1), dim3(1), nullptr, 0, nullptr));
  CUDA_EXPECT(cudaErrorInvalidDeviceFunction, cudaGetLastError());
  REQUIRE(cudaGetErrorString(cudaErrorInvalidValue) != nullptr, "text");

  Trap<<<1, 1>>>();
  Sticky(cudaErrorLaunchFailure, "trap");
  Wild<<<1, 1>>>();
  Sticky(cudaErrorIllegalAddress, "wild store");
  char* bytes;
  CUDA_CHECK(cudaMalloc(&bytes, 16));
  Odd<<<1, 1>>>(bytes);
  Sticky(cudaErrorMisalignedAddress, "misaligned store");
  std::printf("PASS launch_errors\n");
  return 0;
}

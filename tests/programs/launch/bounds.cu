// __launch_bounds__ and friends: the attributes of functions say what the compiler was told, a
// launch beyond the bound or beyond the device is refused with the proper error, and nothing runs.
//
// finds: api_error
#include "arrays.h"

namespace {

__global__ void __launch_bounds__(128) Bounded(int* out) { atomicAdd(out, 1); }
__global__ void Plain(int* out) { atomicAdd(out, 1); }
__global__ void __launch_bounds__(256, 2) TwoPerSm(int* out) { atomicAdd(out, 1); }

}  // namespace

int main() {
  int* out = Zeroed<int>(1);
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, Bounded));
  REQUIRE(attributes.maxThreadsPerBlock == 128, "%d threads", attributes.maxThreadsPerBlock);
  // The PTX is what nvcc was told to make, and the driver makes code of it for this device.
  REQUIRE(attributes.ptxVersion == __CUDA_ARCH_LIST__ / 10 && attributes.binaryVersion == 90,
          "versions %d, %d", attributes.ptxVersion, attributes.binaryVersion);
  REQUIRE(attributes.numRegs > 0 && attributes.numRegs <= 255, "%d registers", attributes.numRegs);
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, TwoPerSm));
  REQUIRE(attributes.maxThreadsPerBlock == 256, "%d threads", attributes.maxThreadsPerBlock);

  Bounded<<<1, 128>>>(out);
  CUDA_CHECK(cudaGetLastError());
  Bounded<<<1, 129>>>(out);
  CUDA_EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  Plain<<<1, 1025>>>(out);
  CUDA_EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
  Plain<<<1, dim3(1, 1, 65)>>>(out);
  CUDA_EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
  Plain<<<0, 32>>>(out);
  CUDA_EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
  Plain<<<1, 0>>>(out);
  CUDA_EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
  Plain<<<dim3(1, 65536), 1>>>(out);
  CUDA_EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
  CUDA_EXPECT(cudaErrorInvalidDeviceFunction,
              cudaLaunchKernel(&out, dim3(1), dim3(1), nullptr, 0, nullptr));
  cudaGetLastError();
  REQUIRE(ToHost(out, 1)[0] == 128, "%d threads ran", Fetch(out));
  std::puts("PASS bounds");
}

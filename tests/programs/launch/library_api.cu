// Code that the program loads itself: libraries and modules from PTX text, through both APIs, their
// kernels and variables, and contexts of the driver API.
//
// finds: api_error
#include <cstring>
#include <string>

#include "driver.h"

namespace {

const char kText[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter = 40;
.visible .entry add(.param .u32 value) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u32 %r1, [value];
  mov.u64 %rd1, counter;
  atom.global.add.u32 %r2, [%rd1], %r1;
  ret;
}
.visible .entry clear() {
  .reg .b64 %rd<2>;
  mov.u64 %rd1, counter;
  st.global.u32 [%rd1], 0;
  ret;
}
)";

}  // namespace

int main() {
  CUDA_CHECK(cudaFree(nullptr));
  // The runtime's names.
  cudaLibrary_t library;
  CUDA_CHECK(cudaLibraryLoadData(&library, kText, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  CUDA_CHECK(cudaLibraryGetKernelCount(&count, library));
  REQUIRE(count == 2, "%u kernels", count);
  cudaKernel_t kernels[2], add;
  CUDA_CHECK(cudaLibraryEnumerateKernels(kernels, 2, library));
  CUDA_CHECK(cudaLibraryGetKernel(&add, library, "add"));
  REQUIRE(add == kernels[0] || add == kernels[1], "the kernel by its name");
  unsigned* counter;
  size_t size = 0;
  CUDA_CHECK(cudaLibraryGetGlobal(reinterpret_cast<void**>(&counter), &size, library, "counter"));
  REQUIRE(size == 4 && Fetch(counter) == 40, "counter %u", Fetch(counter));
  unsigned value = 2;
  void* arguments[] = {&value};
  CUDA_CHECK(cudaLaunchKernel(add, dim3(3), dim3(32), arguments, 0, nullptr));
  REQUIRE(Fetch(counter) == 40 + 3 * 32 * 2, "counter %u", Fetch(counter));
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, add));
  const char* name = nullptr;
  CUDA_CHECK(cudaFuncGetName(&name, add));
  REQUIRE(std::strcmp(name, "add") == 0, "name %s", name);
  CUDA_EXPECT(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&add, library, "nothing"));
  CUDA_CHECK(cudaLibraryUnload(library));

  // The driver's: a module in a context of its own choosing.
  CUcontext primary, current;
  DRIVER_CHECK(DRIVER(cuDevicePrimaryCtxRetain)(&primary, 0));
  DRIVER_CHECK(DRIVER(cuCtxGetCurrent)(&current));
  REQUIRE(current == primary, "the runtime uses the primary context");
  CUmodule module;
  DRIVER_CHECK(DRIVER(cuModuleLoadData)(&module, kText));
  CUfunction function;
  DRIVER_CHECK(DRIVER(cuModuleGetFunction)(&function, module, "add"));
  DRIVER_EXPECT(CUDA_ERROR_NOT_FOUND, DRIVER(cuModuleGetFunction)(&function, module, "nothing"));
  DRIVER_CHECK(DRIVER(cuModuleGetFunctionCount)(&count, module));
  REQUIRE(count == 2, "%u functions", count);
  CUdeviceptr address;
  DRIVER_CHECK(DRIVER(cuModuleGetGlobal)(&address, &size, module, "counter"));
  value = 5;
  DRIVER_CHECK(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 2, 1, 1, 0, nullptr, arguments, nullptr));
  std::size_t bytes = sizeof value;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &value, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  DRIVER_CHECK(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  // Since CUDA 13 the version that is found by this name takes the context.
  const auto synchronize =
      reinterpret_cast<decltype(&cuCtxSynchronize_v2)>(DriverEntry("cuCtxSynchronize"));
  DRIVER_CHECK(synchronize(nullptr));
  unsigned got = 0;
  DRIVER_CHECK(DRIVER(cuMemcpyDtoH)(&got, address, sizeof got));
  REQUIRE(got == 40 + 3 * 5, "counter %u", got);
  int registers = 0;
  DRIVER_CHECK(DRIVER(cuFuncGetAttribute)(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  DRIVER_CHECK(DRIVER(cuModuleUnload)(module));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuModuleUnload)(module));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_PTX,
                DRIVER(cuModuleLoadData)(&module, ".version 8.0\nnonsense"));

  // A kernel of a library as a function of the current context.
  CUlibrary driver_library;
  CUkernel kernel;
  DRIVER_CHECK(
      DRIVER(cuLibraryLoadData)(&driver_library, kText, nullptr, nullptr, 0, nullptr, nullptr, 0));
  DRIVER_CHECK(DRIVER(cuLibraryGetKernel)(&kernel, driver_library, "clear"));
  DRIVER_CHECK(DRIVER(cuKernelGetFunction)(&function, kernel));
  DRIVER_CHECK(DRIVER(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  DRIVER_CHECK(DRIVER(cuLibraryGetGlobal)(&address, &size, driver_library, "counter"));
  DRIVER_CHECK(DRIVER(cuMemcpyDtoH)(&got, address, sizeof got));
  REQUIRE(got == 0, "counter %u", got);
  CUlibrary back;
  DRIVER_CHECK(DRIVER(cuKernelGetLibrary)(&back, kernel));
  REQUIRE(back == driver_library, "the kernel's library");
  DRIVER_CHECK(DRIVER(cuLibraryUnload)(driver_library));

  // The stack of contexts.
  CUcontext made, popped;
  CUdevice device = -1;
  const auto get_device =
      reinterpret_cast<decltype(&cuCtxGetDevice_v2)>(DriverEntry("cuCtxGetDevice"));
  DRIVER_CHECK(DRIVER(cuCtxCreate)(&made, nullptr, CU_CTX_SCHED_AUTO, 1));
  DRIVER_CHECK(get_device(&device, nullptr));
  REQUIRE(device == 1, "device %d", device);
  DRIVER_CHECK(DRIVER(cuCtxPushCurrent)(primary));
  DRIVER_CHECK(get_device(&device, nullptr));
  REQUIRE(device == 0, "device %d", device);
  DRIVER_CHECK(DRIVER(cuCtxPopCurrent)(&popped));
  REQUIRE(popped == primary, "popped");
  DRIVER_CHECK(DRIVER(cuCtxPopCurrent)(&popped));
  REQUIRE(popped == made, "popped");
  DRIVER_CHECK(DRIVER(cuCtxDestroy)(made));
  DRIVER_EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuCtxPushCurrent)(made));
  DRIVER_CHECK(DRIVER(cuDevicePrimaryCtxRelease)(0));
  CUgreenCtx green;
  DRIVER_EXPECT(CUDA_ERROR_NOT_SUPPORTED, DRIVER(cuGreenCtxCreate)(&green, nullptr, 0, 0));
  std::printf("PASS library_api\n");
  return 0;
}

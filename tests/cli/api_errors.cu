// Calls that fail, by kind: calls of the driver, calls of the runtime with their arguments, answers
// that are no errors. calls_of_library.cu has the same in a shared library.
#include <cuda.h>

#include <cstdio>
#include <cstring>

extern "C" int CallsOfLibrary();

namespace {

void* Driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion(name, &function, CUDART_VERSION, cudaEnableDefault, &found);
  return function;
}
#define DRIVER(name) (reinterpret_cast<decltype(&name)>(Driver(#name)))

__device__ int g_word;
__global__ void Count() { ++g_word; }

void DriverCalls() {
  CUdeviceptr address = 0;
  DRIVER(cuMemAlloc)(&address, 0);
  DRIVER(cuMemFree)(0x1234);
  DRIVER(cuEventCreate)(nullptr, 0);
  CUmodule module;
  DRIVER(cuModuleLoad)(&module, "no such file");
  CUmemGenericAllocationHandle handle;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 77;
  DRIVER(cuMemCreate)(&handle, 1 << 21, &properties, 0);
  DRIVER(cuMemUnmap)(0x4000, 1 << 21);
}

// None of these is an error of the program.
void Answers() {
  int on_host = 0;
  CUmemorytype type;
  DRIVER(cuPointerGetAttribute)
  (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&on_host));
  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, &on_host);
  void* function;
  DRIVER(cuGetProcAddress)("cuNothing", &function, 13000, 0, nullptr);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  Count<<<1, 1, 0, stream>>>();
  cudaStreamQuery(stream);
  DRIVER(cuStreamQuery)(stream);
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
}

// One failing call of each group.
void RuntimeCalls() {
  int* memory = nullptr;
  cudaMalloc(&memory, 4096);
  int* none = nullptr;
  cudaMalloc(&none, std::size_t{1} << 50);
  cudaHostAlloc(nullptr, 16, cudaHostAllocMapped);
  cudaMallocAsync(nullptr, 32, 0);
  cudaStreamCreateWithFlags(nullptr, 1);
  cudaStreamWaitEvent(nullptr, nullptr, 0);
  cudaEventRecord(nullptr, nullptr);
  cudaDeviceEnablePeerAccess(99, 0);
  cudaMemset(nullptr, 7, 16);
  cudaMemcpy(memory, nullptr, 8, static_cast<cudaMemcpyKind>(9));
  int word = 0;
  cudaMemcpyToSymbol(g_word, &word, sizeof word, 64);
  cudaHostRegister(nullptr, 4096, 0);
  cudaIpcMemHandle_t handle{};
  cudaIpcOpenMemHandle(nullptr, handle, cudaIpcMemLazyEnablePeerAccess);
  cudaGraphLaunch(nullptr, nullptr);
  for (int i = 0; i < 3; ++i) cudaSetDevice(90 + i);
  cudaGetLastError();
}

}  // namespace

int main(int, char** argv) {
  cudaFree(nullptr);
  const auto is = [&](const char* name) { return std::strcmp(argv[1], name) == 0; };
  if (is("driver")) DriverCalls();
  if (is("answers")) Answers();
  if (is("runtime")) RuntimeCalls();
  if (is("library")) std::printf("%d calls failed\n", CallsOfLibrary());
  return 0;
}

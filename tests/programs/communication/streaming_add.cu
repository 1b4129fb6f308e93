// The bench's workload: c = a + b in float4, on several devices at once, one host thread each.
// Usage: streaming_add [devices] [float elements per device, a multiple of 4] [repetitions]
//
// run:
// run 8: | 8 32768
#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int kThreads = 256;

__global__ void Add(const float4* a, const float4* b, float4* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float4 x = a[i], y = b[i];
  c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

void Run(int device, long elements, long repetitions) {
  const size_t bytes = elements * sizeof(float);
  const int vectors = int(elements / 4);
  std::vector<float> host[2] = {std::vector<float>(elements), std::vector<float>(elements)};
  for (long i = 0; i < elements; ++i) {
    host[0][i] = float((i + device) % 4093);
    host[1][i] = float(i % 1021);
  }
  float4* memory[3];
  CUDA_CHECK(cudaSetDevice(device));
  for (int k = 0; k < 3; ++k) {
    CUDA_CHECK(cudaMalloc(&memory[k], bytes));
    if (k < 2) CUDA_CHECK(cudaMemcpy(memory[k], host[k].data(), bytes, cudaMemcpyHostToDevice));
  }
  for (long repetition = 0; repetition < repetitions; ++repetition) {
    Add<<<(vectors + kThreads - 1) / kThreads, kThreads>>>(memory[0], memory[1], memory[2],
                                                           vectors);
    CUDA_CHECK_LAUNCH();
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<float> got(elements);
  CUDA_CHECK(cudaMemcpy(got.data(), memory[2], bytes, cudaMemcpyDeviceToHost));
  for (long i = 0; i < elements; ++i) {
    const float expected = host[0][i] + host[1][i];
    REQUIRE(got[i] == expected, "device %d, element %ld: got %g, expected %g", device, i, got[i],
            expected);
  }
  for (float4* part : memory) CUDA_CHECK(cudaFree(part));
}

}  // namespace

int main(int argc, char** argv) {
  const int devices = int(Argument(argc, argv, 1, 1));
  const long elements = Argument(argc, argv, 2, 1 << 18);
  const long repetitions = Argument(argc, argv, 3, 1);
  REQUIRE(elements > 0 && elements % 4 == 0 && repetitions > 0, "%ld elements, %ld repetitions",
          elements, repetitions);
  RequireDevices(devices);
  std::vector<std::thread> threads;
  for (int device = 0; device < devices; ++device) {
    threads.emplace_back(Run, device, elements, repetitions);
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("PASS streaming_add: %d devices, %ld floats, %ld repetitions\n", devices, elements,
              repetitions);
  return 0;
}

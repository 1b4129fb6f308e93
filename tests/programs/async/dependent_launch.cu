// Programmatic dependent launch: the second kernel may start before the first has ended, waits with
// griddepcontrol.wait for the first one's memory, and a chain of such launches gives the same as
// ordinary ones.
// nvcc: -arch=sm_90
#include <utility>

#include "arrays.h"

namespace {

__global__ void Step(const unsigned* in, unsigned* out, unsigned add, bool early) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (early) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const unsigned own = i * 2654435761u;  // work that needs nothing from before
  asm volatile("griddepcontrol.wait;" ::: "memory");
  __nanosleep(i % 7 * 100);
  out[i] = in[i] * 3 + (own >> 28) + add;
}

void Launch(const unsigned* in, unsigned* out, unsigned add, bool early, bool programmatic,
            cudaStream_t stream) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(20);
  config.blockDim = dim3(64);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = programmatic ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, Step, in, out, add, early));
}

}  // namespace

int main() {
  constexpr unsigned kCount = 20 * 64, kSteps = 9;
  std::vector<unsigned> start, expected;
  for (unsigned i = 0; i < kCount; ++i) start.push_back(i);
  expected = start;
  for (unsigned step = 0; step < kSteps; ++step) {
    for (unsigned i = 0; i < kCount; ++i)
      expected[i] = expected[i] * 3 + (i * 2654435761u >> 28) + step;
  }
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  for (const bool programmatic : {false, true}) {
    for (const bool early : {false, true}) {
      unsigned* from = ToDevice(start);
      unsigned* to = Unwritten<unsigned>(kCount);
      for (unsigned step = 0; step < kSteps; ++step) {
        Launch(from, to, step, early, programmatic, stream);
        std::swap(from, to);
      }
      REQUIRE_SAME(ToHost(from, kCount), expected);
    }
  }
  std::puts("PASS dependent_launch");
}

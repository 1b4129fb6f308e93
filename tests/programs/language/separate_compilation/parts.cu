// The other half of separate_compilation: what main.cu calls and what calls back into it.
#include "parts.h"

namespace {

__device__ int Add(int a, int b) { return a + b; }
__device__ int Subtract(int a, int b) { return a - b; }

__global__ void There(int* out) { *out = shared_counter; }

}  // namespace

__constant__ float factor = 1.0f;
__device__ Operation operations[2] = {Add, Subtract};

__device__ int Twice(int x) { return 2 * x; }
__device__ int CallBack(int x) { return CalledBack(x + 1); }

void LaunchThere(int* out) { There<<<1, 1>>>(out); }

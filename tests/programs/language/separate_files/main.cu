// nvcc: -rdc=true
// Several device objects linked into one: functions and variables of other files, names that every
// file has for itself, templates in two files, tables of functions, virtual functions, symbols.
#include "check.h"
#include "shared.h"

static __device__ int hidden = 5;
static __device__ __noinline__ int Helper(int x) { return x * hidden; }

extern __shared__ int dynamic[];

__global__ void SetHidden(int value);

__global__ void Compute(int* out) {
  dynamic[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (threadIdx.x != 0) return;
  out[0] = Scale(30);  // 2 * (30 + 1000)
  out[1] = Helper(7);  // 35
  out[2] = counter + squares[5];
  out[3] = static_cast<int>(weights[2] * 2.0f);
  out[4] = Smallest(9, 4) + dynamic[31];
  out[5] = CountCalls() + CountCalls();
  for (int i = 0; i < 3; ++i) out[6 + i] = operations[i](10);
  Square square;
  const Shape* shape = &square;
  out[9] = shape->Area();
  out[10] = "main"[dynamic[1]] + LetterOfLibrary(dynamic[2]);  // 'a' and 'b'
  counter = 77;
}

int main() {
  int* out = ZeroedOn<int>(0, 16);
  Compute<<<1, 64, 64 * sizeof(int)>>>(out);
  CUDA_CHECK_LAUNCH();
  int host[16];
  CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  const int expected[11] = {2060, 35, 36, 5, 35, 2001, 2024, -10, 11, 9, 'a' + 'b'};
  for (int i = 0; i < 11; ++i) {
    REQUIRE(host[i] == expected[i], "out[%d] is %d, expected %d", i, host[i], expected[i]);
  }
  int value = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  REQUIRE(value == 77, "counter is %d", value);
  // Each file's `hidden` is its own.
  SetHidden<<<1, 1>>>(1);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaMemcpyFromSymbol(&value, hidden, sizeof value));
  REQUIRE(value == 5, "main's hidden is %d", value);
  Compute<<<1, 64, 64 * sizeof(int)>>>(out);
  CUDA_CHECK_LAUNCH();
  REQUIRE(Fetch(out) == 62, "Scale(30) is %d", Fetch(out));
  return 0;
}

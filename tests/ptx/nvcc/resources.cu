// Kernels that differ in what they need: spills, much shared memory, named barriers, large
// parameters, a fixed block size.
struct Large {
  char bytes[1000];
};

__global__ void __launch_bounds__(1024, 2) Spills(float* p) {
  float v[120];
#pragma unroll
  for (int i = 0; i < 120; ++i) v[i] = p[i * blockDim.x + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 120; ++i) p[i * blockDim.x + threadIdx.x] = v[119 - i] * v[i];
}

__global__ void NamedBarriers(float* p) {
  __shared__ float a[3000];
  a[threadIdx.x] = p[threadIdx.x];
  asm volatile("bar.sync 3, 64;");
  p[threadIdx.x] = a[threadIdx.x ^ 1];
}

__global__ void Parameters(const __grid_constant__ Large large, float* p) {
  p[0] = large.bytes[threadIdx.x];
}

__device__ __noinline__ int Deep(int* p, int n) {
  int local[32];
  for (int i = 0; i < n; ++i) local[i & 31] = p[i];
  return n == 0 ? 0 : local[n & 31] + Deep(p + 1, n - 1);
}

__global__ void Stack(int* p) { p[0] = Deep(p, p[1]); }

__global__ void Nothing() {}

// Calls, function pointers, switch tables, recursion, local arrays, printf, assert.
#include <cassert>
#include <cstdio>

struct Mixed {
  int a;
  float b[3];
  char c;
};

__device__ int counter = 5;
__device__ int* counter_address = &counter;
__device__ Mixed mixed = {1, {2.0f, 3.0f, 4.0f}, 'c'};
__device__ __align__(1) struct __attribute__((packed)) {
  char pad;
  int* where;
} unaligned_address = {1, &counter};
__constant__ double weights[2] = {1.5, 2.5};
__constant__ float matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
__managed__ int managed_value = 3;
extern __shared__ int dynamic_shared[];

__device__ __noinline__ int TakesStruct(int a, Mixed m) { return a + m.a + m.b[a & 1]; }
__device__ __noinline__ Mixed GivesStruct(int a) { return {a, {1.0f, 2.0f, a * 1.0f}, 'x'}; }
__device__ int Increment(int x) { return x + 1; }
__device__ int Twice(int x) { return x * 2; }
__device__ int (*table[2])(int) = {Increment, Twice};
__device__ __noinline__ int Fibonacci(int n) {
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}

struct Base {
  __device__ virtual int Run(int x) { return x; }
};
struct Derived : Base {
  __device__ int Run(int x) override { return x * 3; }
};

__global__ void __launch_bounds__(256, 2) Kernel(int* p, Mixed s, int n) {
  int local[16];
  for (int i = 0; i < n; ++i) local[i & 15] = i * p[i];
  int v = TakesStruct(local[n & 15], s);
  v += table[n & 1](v);
  switch (n) {
    case 0:
      p[1] = 7;
      break;
    case 1:
      p[2] += v;
      break;
    case 2:
      v -= 9;
      break;
    case 3:
      v ^= p[3];
      break;
    case 4:
      p[9] = 1;
      break;
    case 5:
      p[77] = 5;
      break;
    case 6:
      v = p[8] * 3;
      break;
    case 7:
      p[6] = v / 3;
      break;
    default:
      v = Fibonacci(v);
  }
  Base* object = n > 3 ? new Base : new Derived;
  v += object->Run(n);
  delete object;
  assert(v != 77);
  printf("v = %d, %s\n", v, n > 2 ? "many" : "few");
  dynamic_shared[threadIdx.x] = v + GivesStruct(v).b[2];
  __syncthreads();
  p[threadIdx.x] = dynamic_shared[255 - threadIdx.x] + counter + mixed.c + *counter_address +
                   managed_value + *unaligned_address.where;
  p[3] = weights[n] + matrix[n & 1][n % 3];
  if (n == 99) __trap();
}

template <class T>
__global__ void Generic(T* out, const T* __restrict__ in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * in[i] + T(1);
}
template __global__ void Generic<float>(float*, const float* __restrict__, int);
template __global__ void Generic<double>(double*, const double* __restrict__, int);
template __global__ void Generic<unsigned char>(unsigned char*, const unsigned char* __restrict__,
                                                int);

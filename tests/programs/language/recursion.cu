// Recursion on the device, with a depth that differs from lane to lane: Fibonacci, Ackermann, the
// towers of Hanoi with an array in each frame, and two functions that call each other.
#include "arrays.h"

namespace {

__host__ __device__ __noinline__ unsigned Fibonacci(unsigned n) {
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}

__host__ __device__ __noinline__ unsigned Ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  if (n == 0) return Ackermann(m - 1, 1);
  return Ackermann(m - 1, Ackermann(m, n - 1));
}

__host__ __device__ __noinline__ unsigned Hanoi(int discs, int from, int to, unsigned checksum) {
  if (discs == 0) return checksum;
  int frame[3];
  frame[0] = from, frame[1] = to, frame[2] = 3 - from - to;
  checksum = Hanoi(discs - 1, frame[0], frame[2], checksum);
  checksum = checksum * 31 + frame[from % 2] * 3 + frame[1];
  return Hanoi(discs - 1, frame[2], frame[1], checksum);
}

__host__ __device__ __noinline__ bool IsOdd(unsigned n);
__host__ __device__ __noinline__ bool IsEven(unsigned n) { return n == 0 ? true : IsOdd(n - 1); }
__host__ __device__ __noinline__ bool IsOdd(unsigned n) { return n == 0 ? false : IsEven(n - 1); }

__host__ __device__ void Answers(unsigned thread, unsigned* out) {
  out[0] = Fibonacci(thread % 13);
  out[1] = Ackermann(thread % 3, thread % 4);
  out[2] = Hanoi(thread % 7, thread % 3, (thread + 1) % 3, thread);
  out[3] = IsEven(thread % 37);
}

__global__ void Run(unsigned* out) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  Answers(thread, out + thread * 4);
}

}  // namespace

int main() {
  constexpr unsigned kBlocks = 2, kThreads = 64, kCount = kBlocks * kThreads;
  size_t stack = 0;
  CUDA_CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
  CUDA_CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
  REQUIRE(stack >= 8192, "a stack of %zu bytes", stack);
  unsigned* out = Unwritten<unsigned>(kCount * 4);
  Run<<<kBlocks, kThreads>>>(out);
  std::vector<unsigned> expected(kCount * 4);
  for (unsigned thread = 0; thread < kCount; ++thread) Answers(thread, &expected[thread * 4]);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS recursion");
}

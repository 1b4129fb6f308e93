// Function pointers: tables in constant and global memory, pointers passed from the host by way of
// a symbol, different targets within a warp, pointers to member functions, and callbacks that
// diverge inside.
#include "arrays.h"

namespace {

using Binary = int (*)(int, int);

__device__ __noinline__ int Add(int a, int b) { return a + b; }
__device__ __noinline__ int Subtract(int a, int b) { return a - b; }
__device__ __noinline__ int Multiply(int a, int b) { return a * b; }
__device__ __noinline__ int Steps(int a, int b) {
  int steps = 0;
  while (a > b) {
    a -= b + 1;
    ++steps;
  }
  return steps;
}

__device__ Binary table[] = {Add, Subtract, Multiply, Steps};
__device__ Binary chosen = Multiply;

__global__ void ByTable(int* out) {
  const int i = threadIdx.x;
  out[i] = table[i % 4](i * 3, i % 7);
}

__global__ void ByArgument(Binary function, int* out) {
  out[threadIdx.x] = function(threadIdx.x, 5);
}

struct Counter {
  int value;
  __device__ __noinline__ int Up(int by) { return value += by; }
  __device__ __noinline__ int Down(int by) { return value -= 2 * by; }
};

__global__ void Members(int* out) {
  Counter counter{static_cast<int>(threadIdx.x)};
  int (Counter::*move)(int) = threadIdx.x % 3 ? &Counter::Up : &Counter::Down;
  (counter.*move)(10);
  out[threadIdx.x] = (counter.*move)(1);
}

template <class Function>
__device__ __noinline__ int Fold(const int* values, int count, Function function) {
  int result = values[0];
  for (int i = 1; i < count; ++i) result = function(result, values[i]);
  return result;
}

__global__ void Folds(const int* values, int count, int* out) {
  out[threadIdx.x] = Fold(values, count - threadIdx.x % 5, table[threadIdx.x % 3]);
}

}  // namespace

int main() {
  constexpr int kThreads = 96;
  int* out = Unwritten<int>(kThreads);
  std::vector<int> expected;
  ByTable<<<1, kThreads>>>(out);
  for (int i = 0; i < kThreads; ++i) {
    const int a = i * 3, b = i % 7;
    expected.push_back(i % 4 == 0 ? a + b : i % 4 == 1 ? a - b : i % 4 == 2 ? a * b : 0);
    if (i % 4 == 3) {
      for (int left = a; left > b; left -= b + 1) ++expected.back();
    }
  }
  REQUIRE_SAME(ToHost(out, kThreads), expected);

  Binary function = nullptr;
  CUDA_CHECK(cudaMemcpyFromSymbol(&function, chosen, sizeof(function)));
  ByArgument<<<1, kThreads>>>(function, out);
  expected.clear();
  for (int i = 0; i < kThreads; ++i) expected.push_back(i * 5);
  REQUIRE_SAME(ToHost(out, kThreads), expected);

  Members<<<1, kThreads>>>(out);
  expected.clear();
  for (int i = 0; i < kThreads; ++i) expected.push_back(i % 3 ? i + 11 : i - 22);
  REQUIRE_SAME(ToHost(out, kThreads), expected);

  const std::vector<int> values = {3, -4, 5, 2, 7, -1, 6};
  Folds<<<1, kThreads>>>(ToDevice(values), static_cast<int>(values.size()), out);
  expected.clear();
  for (int i = 0; i < kThreads; ++i) {
    int result = values[0];
    for (size_t j = 1; j < values.size() - i % 5; ++j) {
      result = i % 3 == 0   ? result + values[j]
               : i % 3 == 1 ? result - values[j]
                            : result * values[j];
    }
    expected.push_back(result);
  }
  REQUIRE_SAME(ToHost(out, kThreads), expected);
  std::puts("PASS function_pointers");
}

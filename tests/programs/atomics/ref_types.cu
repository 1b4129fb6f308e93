// cuda::atomic_ref on every type it takes: 32- and 64-bit integers, float, double, 8- and 16-bit
// integers (which go by compare-and-swap on the word around them), pointers and small structs.
#include <cuda/atomic>

#include "arrays.h"

namespace {

constexpr int kThreads = 96;

template <class T>
using Ref = cuda::atomic_ref<T, cuda::thread_scope_device>;

template <class T>
__global__ void Arithmetic(T* places) {
  const T mine = static_cast<T>(threadIdx.x);
  Ref<T>(places[0]).fetch_add(mine, cuda::memory_order_relaxed);
  Ref<T>(places[1]).fetch_sub(mine, cuda::memory_order_relaxed);
  Ref<T>(places[2]).fetch_max(mine - 40, cuda::memory_order_relaxed);
  Ref<T>(places[3]).fetch_min(mine - 40, cuda::memory_order_relaxed);
  T seen = Ref<T>(places[4]).load(cuda::memory_order_relaxed);
  while (!Ref<T>(places[4]).compare_exchange_weak(seen, seen + 1, cuda::memory_order_relaxed)) {
  }
}

template <class T>
void Check() {
  T* places = ToDevice(std::vector<T>{1, 0, -100, 100, 0});
  Arithmetic<T><<<1, kThreads>>>(places);
  const std::vector<T> expected = {static_cast<T>(1 + kThreads * (kThreads - 1) / 2),
                                   static_cast<T>(-kThreads * (kThreads - 1) / 2), kThreads - 41,
                                   -40, kThreads};
  REQUIRE_SAME(ToHost(places, 5), expected);
}

struct Point {
  int x, y;
};

__global__ void Others(Point* point, int** pointer, unsigned char* bytes, unsigned short* shorts,
                       bool* flag, int* numbers) {
  const int thread = threadIdx.x;
  Point seen = Ref<Point>(*point).load();
  while (!Ref<Point>(*point).compare_exchange_strong(seen, {seen.x + 1, seen.y - 1})) {
  }
  Ref<unsigned char>(bytes[thread % 4]).fetch_add(1);
  Ref<unsigned short>(shorts[thread % 2]).fetch_add(1000);
  if (thread == 40) Ref<bool>(*flag).store(true);
  if (thread == 17) Ref<int*>(*pointer).store(numbers + 17);
}

}  // namespace

int main() {
  Check<int>();
  Check<long long>();
  Check<float>();
  Check<double>();
  Point* point = Zeroed<Point>(1);
  int** pointer = Zeroed<int*>(1);
  unsigned char* bytes = Zeroed<unsigned char>(4);
  unsigned short* shorts = Zeroed<unsigned short>(2);
  bool* flag = Zeroed<bool>(4);
  int* numbers = Zeroed<int>(64);
  Others<<<1, kThreads>>>(point, pointer, bytes, shorts, flag, numbers);
  CUDA_CHECK(cudaDeviceSynchronize());
  const Point got = Fetch(point);
  REQUIRE(got.x == kThreads && got.y == -kThreads, "point (%d, %d)", got.x, got.y);
  REQUIRE(Fetch(pointer) == numbers + 17, "the pointer is wrong");
  REQUIRE_SAME(ToHost(bytes, 4), std::vector<unsigned char>(4, kThreads / 4));
  REQUIRE_SAME(ToHost(shorts, 2), std::vector<unsigned short>(2, kThreads / 2 * 1000 & 0xffff));
  REQUIRE(Fetch(flag) && !Fetch(flag + 1), "the flag is wrong");
  std::puts("PASS ref_types");
}

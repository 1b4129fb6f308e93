// Every integer atomic on int, unsigned and 64-bit types, in global and shared memory: the result
// in memory, and that the returned old values form a proper sequence.
#include <algorithm>

#include "arrays.h"

namespace {

constexpr int kThreads = 256, kBlocks = 6, kCount = kThreads * kBlocks;

enum Operation { kAdd, kSub, kMin, kMax, kAnd, kOr, kXor, kInc, kDec, kExch, kCas, kOperations };

// CUDA has these for unsigned 64-bit numbers only; the bits are the same.
__device__ long long atomicAdd(long long* at, long long value) {
  return ::atomicAdd(reinterpret_cast<unsigned long long*>(at), value);
}
__device__ long long atomicExch(long long* at, long long value) {
  return ::atomicExch(reinterpret_cast<unsigned long long*>(at), value);
}
__device__ long long atomicCAS(long long* at, long long expected, long long value) {
  return ::atomicCAS(reinterpret_cast<unsigned long long*>(at), expected, value);
}
using ::atomicAdd;
using ::atomicCAS;
using ::atomicExch;

template <class T>
__device__ T Apply(int operation, T* at, T value) {
  switch (operation) {
    case kAdd:
      return atomicAdd(at, value);
    case kMin:
      return atomicMin(at, value);
    case kMax:
      return atomicMax(at, value);
    case kAnd:
      return atomicAnd(at, value);
    case kOr:
      return atomicOr(at, value);
    case kXor:
      return atomicXor(at, value);
    case kExch:
      return atomicExch(at, value);
    default: {
      // A sum by compare-and-swap.
      T seen = *const_cast<volatile T*>(at), expected;
      do {
        expected = seen;
        seen = atomicCAS(at, expected, expected + value);
      } while (seen != expected);
      return seen;
    }
  }
}

template <class T>
__global__ void Run(int operation, T* at, const T* values, T* old) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  old[i] = Apply(operation, at, values[i]);
}

template <class T>
__global__ void RunShared(int operation, T start, T* out, const T* values) {
  __shared__ T place;
  if (threadIdx.x == 0) place = start;
  __syncthreads();
  Apply(operation, &place, values[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) *out = place;
}

template <class T>
T Combine(int operation, T a, T b) {
  switch (operation) {
    case kMin:
      return std::min(a, b);
    case kMax:
      return std::max(a, b);
    case kAnd:
      return a & b;
    case kOr:
      return a | b;
    case kXor:
      return a ^ b;
    default:
      return a + b;
  }
}

template <class T>
void Check(T start) {
  Random random(sizeof(T));
  std::vector<T> values;
  for (int i = 0; i < kCount; ++i) values.push_back(static_cast<T>(random.Next64()));
  const T* in = ToDevice(values);
  for (const int operation : {kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas}) {
    T* at = ToDevice(std::vector<T>{start, start});
    T* old = Unwritten<T>(kCount);
    Run<T><<<kBlocks, kThreads>>>(operation, at, in, old);
    const T result = ToHost(at, 1)[0];
    std::vector<T> returned = ToHost(old, kCount);
    if (operation == kExch) {
      // Every value is returned once or stays; together with the start they are the same set.
      returned.push_back(result);
      std::vector<T> expected = values;
      expected.push_back(start);
      std::sort(returned.begin(), returned.end());
      std::sort(expected.begin(), expected.end());
      REQUIRE_SAME(returned, expected);
      continue;
    }
    T expected = start;
    for (const T value : values) expected = Combine(operation, expected, value);
    REQUIRE(result == expected, "operation %d of %zu bytes: wrong result", operation, sizeof(T));
    REQUIRE(std::count(returned.begin(), returned.end(), start) >= 1, "nobody saw the start");
    RunShared<T><<<1, kThreads>>>(operation, start, at + 1, in);
    expected = start;
    for (int i = 0; i < kThreads; ++i) expected = Combine(operation, expected, values[i]);
    REQUIRE(ToHost(at + 1, 1)[0] == expected, "operation %d of %zu bytes in shared memory",
            operation, sizeof(T));
  }
}

__global__ void Wrap(unsigned* counters, unsigned* old_inc, unsigned* old_dec, int* sub) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  old_inc[i] = atomicInc(&counters[0], 99);
  old_dec[i] = atomicDec(&counters[1], 99);
  atomicSub(sub, i);
}

}  // namespace

int main() {
  Check<int>(5);
  Check<unsigned>(0x80000000u);
  Check<long long>(-3);
  Check<unsigned long long>(1ull << 63);

  unsigned* counters = Zeroed<unsigned>(2);
  unsigned* old = Unwritten<unsigned>(2 * kCount);
  int* sub = Zeroed<int>(1);
  Wrap<<<kBlocks, kThreads>>>(counters, old, old + kCount, sub);
  std::vector<unsigned> up = ToHost(old, kCount), down = ToHost(old + kCount, kCount);
  // atomicInc counts 0..99 and wraps; atomicDec goes from 0 to 99 and down.
  REQUIRE(Fetch(counters) == kCount % 100, "inc ends at %u", Fetch(counters));
  REQUIRE(Fetch(counters + 1) == (100 - kCount % 100) % 100, "dec ends at %u", Fetch(counters + 1));
  std::vector<unsigned> expected;
  for (int i = 0; i < kCount; ++i) expected.push_back(i % 100);
  std::sort(expected.begin(), expected.end());
  std::sort(up.begin(), up.end());
  REQUIRE_SAME(up, expected);
  expected.clear();
  for (int i = 0; i < kCount; ++i) expected.push_back((100 - i % 100) % 100);
  std::sort(expected.begin(), expected.end());
  std::sort(down.begin(), down.end());
  REQUIRE_SAME(down, expected);
  REQUIRE(Fetch(sub) == -(kCount * (kCount - 1) / 2), "sub ends at %d", Fetch(sub));
  std::puts("PASS integers");
}

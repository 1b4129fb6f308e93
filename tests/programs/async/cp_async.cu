// cp.async in PTX: copies of 4, 8 and 16 bytes, zero fill, groups that are committed and waited for
// in order, a double-buffered loop, and wait_all.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

__device__ unsigned Shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

template <int kBytes>
__device__ void Copy(void* to, const void* from) {
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(Shared(to)), "l"(from)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(Shared(to)), "l"(from),
                 "n"(kBytes)
                 : "memory");
  }
}
__device__ void Commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ void Wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

template <int kBytes>
__global__ void Sizes(const unsigned char* in, unsigned char* out) {
  __shared__ alignas(16) unsigned char board[64 * 16];
  for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x) board[i] = 0xaa;
  __syncthreads();
  Copy<kBytes>(board + threadIdx.x * 16, in + threadIdx.x * 16);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  for (int i = 0; i < 16; ++i) out[threadIdx.x * 16 + i] = board[(63 - threadIdx.x) * 16 + i];
}

// Fewer source bytes than the copy has: the rest is zero.
__global__ void ZeroFill(const uint4* in, uint4* out) {
  __shared__ uint4 board[17];
  board[threadIdx.x] = make_uint4(9, 9, 9, 9);
  __syncthreads();
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(Shared(&board[threadIdx.x])),
               "l"(in + threadIdx.x), "r"(threadIdx.x)
               : "memory");
  Commit();
  Wait<0>();
  __syncthreads();
  out[threadIdx.x] = board[threadIdx.x];
}

// Two stages: while one is summed, the next is on its way.
__global__ void Pipeline(const int* in, int tiles, long long* out) {
  __shared__ int stages[2][64];
  const int thread = threadIdx.x;
  long long sum = 0;
  Copy<4>(&stages[0][thread], in + thread);
  Commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) Copy<4>(&stages[(tile + 1) % 2][thread], in + (tile + 1) * 64 + thread);
    Commit();
    Wait<1>();
    __syncthreads();
    sum += static_cast<long long>(stages[tile % 2][63 - thread]) * (tile + 1);
    __syncthreads();
  }
  out[thread] = sum;
}

template <int kBytes>
void CheckSize(const std::vector<unsigned char>& in) {
  unsigned char* out = Unwritten<unsigned char>(64 * 16);
  Sizes<kBytes><<<1, 64>>>(ToDevice(in), out);
  std::vector<unsigned char> expected;
  for (int thread = 0; thread < 64; ++thread) {
    for (int i = 0; i < 16; ++i) expected.push_back(i < kBytes ? in[(63 - thread) * 16 + i] : 0xaa);
  }
  REQUIRE_SAME(ToHost(out, 64 * 16), expected);
}

}  // namespace

int main() {
  Random random(101);
  std::vector<unsigned char> bytes;
  for (int i = 0; i < 64 * 16; ++i) bytes.push_back(static_cast<unsigned char>(random.Next()));
  CheckSize<4>(bytes);
  CheckSize<8>(bytes);
  CheckSize<16>(bytes);

  unsigned char* filled = Unwritten<unsigned char>(17 * 16);
  ZeroFill<<<1, 17>>>(reinterpret_cast<uint4*>(ToDevice(bytes)), reinterpret_cast<uint4*>(filled));
  std::vector<unsigned char> expected;
  for (int thread = 0; thread < 17; ++thread) {
    for (int i = 0; i < 16; ++i) expected.push_back(i < thread ? bytes[thread * 16 + i] : 0);
  }
  REQUIRE_SAME(ToHost(filled, expected.size()), expected);

  constexpr int kTiles = 9;
  std::vector<int> numbers;
  for (int i = 0; i < kTiles * 64; ++i) numbers.push_back(static_cast<int>(random.Next()));
  long long* sums = Unwritten<long long>(64);
  Pipeline<<<1, 64>>>(ToDevice(numbers), kTiles, sums);
  std::vector<long long> expected_sums(64, 0);
  for (int thread = 0; thread < 64; ++thread) {
    for (int tile = 0; tile < kTiles; ++tile) {
      expected_sums[thread] +=
          static_cast<long long>(numbers[tile * 64 + 63 - thread]) * (tile + 1);
    }
  }
  REQUIRE_SAME(ToHost(sums, 64), expected_sums);
  std::puts("PASS cp_async");
}

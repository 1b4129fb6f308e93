// mbarriers inside a block: producers arrive, consumers wait; thread 0 tells the peer at the end.
// EXPECT 1 race|mbarrier: no __syncthreads() behind init
// EXPECT 2 mbarrier: initialised twice (by two threads)
// EXPECT 3 mbarrier: the barrier's memory is reused for another barrier without inval
// EXPECT 4 mbarrier|race: memory of the barrier is overwritten by ordinary stores without inval
// EXPECT 5 mbarrier: used without init
#include "common.h"
constexpr int T = 64, K = 4;
DEV unsigned sm(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV void init(void* b, int n) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sm(b)), "r"(n) : "memory");
}
DEV void arrive(void* b) {
  asm volatile("{\n.reg .b64 s;\nmbarrier.arrive.shared::cta.b64 s, [%0];\n}" ::"r"(sm(b))
               : "memory");
}
DEV void wait(void* b, unsigned par) {
  asm volatile(
      "{\n.reg .pred p;\nW_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra "
      "W_%=;\n}" ::"r"(sm(b)),
      "r"(par)
      : "memory");
}
__global__ void Run(int* to, unsigned* flag) {
  __shared__ int v[2][32];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
#if BUG == 2
  if (threadIdx.x == 0 || threadIdx.x == 32)
#elif BUG == 5
  if (threadIdx.x > 2000)
#else
  if (threadIdx.x == 0)
#endif
    for (int s = 0; s < 2; ++s) {
      init(full + s, 32);
      init(empty + s, 32);
    }
#if BUG != 1
  __syncthreads();
#endif
  int sum = 0;
  for (int k = 0; k < K; ++k) {
    const int s = k % 2, r = k / 2;
    if (threadIdx.x < 32) {
      if (r) wait(empty + s, (r - 1) & 1);
      v[s][threadIdx.x] = k * 32 + threadIdx.x;
      arrive(full + s);
    } else {
      wait(full + s, r & 1);
      sum += v[s][63 - threadIdx.x];
      arrive(empty + s);
    }
  }
  __syncthreads();
#if BUG == 3
  if (threadIdx.x == 0) init(full, 64);
  __syncthreads();
  arrive(full);
  wait(full, 0);
#elif BUG == 4
  full[threadIdx.x % 2] = 5;
  __syncthreads();
  sum += 0 * (int)full[1];
#else
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(sm(full + s)) : "memory");
      asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(sm(empty + s)) : "memory");
    }
    init(full, 64);
  }
  __syncthreads();
  arrive(full);
  wait(full, 0);
#endif
  if (threadIdx.x >= 32) to[threadIdx.x - 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) st_release(flag, 1);
}
__global__ void Take(const int* box, unsigned* flag, int* out) {
  if (threadIdx.x == 0) wait_ge(flag, 1);
  __syncwarp();
  out[threadIdx.x] = box[threadIdx.x];
}
int main() {
  peers(2);
  int *box = alloc<int>(1, 32), *out = alloc<int>(1, 32);
  unsigned* flag = alloc<unsigned>(1, 1);
  sync_all(2);
  CK(cudaSetDevice(1));
  Take<<<1, 32>>>(box, flag, out);
  CK(cudaSetDevice(0));
  Run<<<1, T>>>(box, flag);
  sync_all(2);
  long wrong = 0;
  auto v = get(1, out, 32);
  for (int i = 0; i < 32; ++i) wrong += v[i] != 32 * 6 + 4 * (31 - i);
  return finish(wrong, 2);
}

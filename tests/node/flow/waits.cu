// The waits of flow_test, as CUDA. Each .ptx beside this file is one kernel of it, as nvcc 13.0 compiles
// it with `-arch=compute_90 -ptx` (name.ptx) or `-O0 -Xcicc -O0` added (name_O0.ptx); those whose
// kernel is not here are written by hand. Kept for reading and for making them again.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" {
__global__ void volatile_flag(int* f, int* out) {
  while (*(volatile int*)f == 0);
  *out = 1;
}
__global__ void acquire_sys(int* f, int epoch, int* out) {
  int v;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(f) : "memory");
  } while (v != epoch);
  *out = v;
}
__global__ void atomic_ref_wait(int* f, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_system> r(*f);
  r.wait(0);
  *out = 1;
}
__global__ void counting(int* f, int* out) {
  int i;
  for (i = 0; i < 1000000000 && !*(volatile int*)f; i++);
  *out = i;
}
__global__ void clock_bound(int* f, int* out) {
  long long t0 = clock64();
  while (*(volatile int*)f == 0) {
    if (clock64() - t0 > 1000000) { *out = -1; return; }
  }
  *out = 1;
}
__global__ void clock32_bound(int* f, int* out) {
  unsigned t0 = clock();
  while (*(volatile int*)f == 0 && (unsigned)clock() - t0 < 100000u);
  *out = 1;
}
__global__ void cas_lock(int* lock, int* x) {
  unsigned ns = 8;
  while (atomicCAS(lock, 0, 1) != 0) { __nanosleep(ns); if (ns < 256) ns *= 2; }
  *x += 1;
  __threadfence();
  atomicExch(lock, 0);
}
__global__ void cas_lock_fixed(int* lock, int* x) {
  while (atomicCAS(lock, 0, 1) != 0) __nanosleep(100);
  *x += 1;
  __threadfence();
  atomicExch(lock, 0);
}
__global__ void grid_sync(int* x) {
  cg::grid_group g = cg::this_grid();
  x[g.thread_rank()] = 1;
  g.sync();
  x[0] += x[1];
}
__global__ void weak_spin(int* f, int* out) {
  while (*f == 0);
  *out = 1;
}
__global__ void peers_one_loop(int** flags, int n, int epoch, int* out) {
  for (int p = 0; p < n; p++) while (*(volatile int*)flags[p] != epoch);
  *out = 1;
}
__global__ void peers_outer(int* flags, int n, int epoch, int* out) {
  int done;
  do {
    done = 1;
    for (int p = 0; p < n; p++) if (*(volatile int*)(flags + p) != epoch) done = 0;
  } while (!done);
  *out = 1;
}
__global__ void peers_outer_fixed(int* flags, int epoch, int* out) {
  int done;
  do {
    done = 0;
    for (int p = 0; p < 8; p++) done += (*(volatile int*)(flags + p) == epoch);
  } while (done != 8);
  *out = 1;
}
__global__ void syncthreads_or_spin(int* f, int* out) {
  int go = 0;
  while (!__syncthreads_or(go)) { go = *(volatile int*)f; }
  *out = 1;
}
__global__ void ballot_spin(int* f, int* out) {
  while (!__all_sync(0xffffffffu, *(volatile int*)(f + threadIdx.x) != 0));
  *out = 1;
}
__global__ void any_reset(int* f, int* out) {
  int spins = 0;
  while (*(volatile int*)f == 0) { if (++spins == 10000) { spins = 0; if (*(volatile int*)(f+1)) break; } }
  *out = 1;
}
__global__ void ll_read(uint4* p, unsigned flag, uint4* out) {
  unsigned d1, f1, d2, f2;
  do {
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(d1),"=r"(f1),"=r"(d2),"=r"(f2) : "l"(p) : "memory");
  } while (f1 != flag || f2 != flag);
  *out = make_uint4(d1, d2, 0, 0);
}
__global__ void store_loop(int* f, int* out) {
  int i = 0;
  while (*(volatile int*)f == 0) { out[i & 7] = i; i++; }
}
__global__ void backoff(unsigned* f, unsigned* out) {
  unsigned x = 1;
  while (*(volatile unsigned*)f < x) { x = x * 1664525u + 1013904223u; x &= 0xff; }
  *out = x;
}
__global__ void mbarrier_wait(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  if (threadIdx.x == 0) init(&b, blockDim.x);
  __syncthreads();
  b.arrive_and_wait();
  *out = 1;
}
__global__ void globaltimer_bound(int* f, int* out) {
  unsigned long long t0, t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    if (t > t0 + 1000000ull) __trap();
  } while (*(volatile int*)f == 0);
  *out = 1;
}
__global__ void mbarrier_asm(int* out) {
  __shared__ unsigned long long bar;
  unsigned a = (unsigned)__cvta_generic_to_shared(&bar);
  asm volatile("{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1; @P1 bra DONE; bra LAB_WAIT; DONE: }" :: "r"(a), "r"(0));
  *out = 1;
}
__global__ void add_poll(unsigned* f, unsigned* out) {
  while (atomicAdd(f, 0) != 5);
  while (atomicOr(f, 0) != 6);
  *out = 1;
}
}

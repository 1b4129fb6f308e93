// Kernels for machine_test.cpp. basics.ptx beside it is made from this file with
//   nvcc -ptx -lineinfo -arch=compute_90 -std=c++17 basics.cu
// and is stored, so that the test runs without a CUDA toolkit.
#include <cooperative_groups.h>
#include <cuda/atomic>

extern "C" {

__global__ void add4(const float4* a, const float4* b, float4* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 x = a[i], y = b[i];
    c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
}

// Lanes take different numbers of turns, with a branch inside.
__global__ void collatz(const unsigned* in, unsigned* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = in[i], steps = 0;
  while (v != 1) {
    if (v & 1) v = 3 * v + 1;
    else v /= 2;
    ++steps;
  }
  out[i] = steps;
}

__global__ void block_sum(const int* in, int* out) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) atomicAdd(out, s[0]);
}

__global__ void warp_sum(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
  unsigned odd = __ballot_sync(0xffffffff, in[threadIdx.x] & 1);
  if (threadIdx.x == 0) {
    out[0] = v;
    out[1] = (int)odd;
  }
}

__global__ void grid_sum(const int* in, int* partial, int* out) {
  auto grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) partial[blockIdx.x] = in[blockIdx.x];
  grid.sync();
  if (grid.thread_rank() == 0) {
    int s = 0;
    for (int i = 0; i < (int)gridDim.x; ++i) s += partial[i];
    *out = s;
  }
}

// Two of these on two devices play ball.
__global__ void pingpong(unsigned* mine, unsigned* theirs, int rounds, int first) {
  cuda::atomic_ref<unsigned, cuda::thread_scope_system> in(*mine), out(*theirs);
  for (int r = 1; r <= rounds; ++r) {
    if (first) out.store(r, cuda::memory_order_release);
    while (in.load(cuda::memory_order_acquire) != r) {
    }
    if (!first) out.store(r, cuda::memory_order_release);
  }
}

__global__ void set_flag(volatile int* flag, int value) { *flag = value; }

__global__ void wait_flag(volatile int* flag, int* seen) {
  while (*flag == 0) {
  }
  *seen = *flag;
}

__global__ void wait_counting(volatile int* flag, unsigned* spins, unsigned bound) {
  unsigned n = 0;
  while (*flag == 0 && n < bound) ++n;
  *spins = n;
}

__global__ void wait_clock(volatile int* flag, long long* waited, long long bound) {
  long long start = clock64(), now = start;
  while (*flag == 0 && now - start < bound) now = clock64();
  *waited = now - start;
}

__global__ void delay_then_set(volatile int* flag, unsigned long long ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < ns);
  *flag = 1;
}

__global__ void wait_atomic(int* flag, int* seen) {
  cuda::atomic_ref<int, cuda::thread_scope_system> f(*flag);
  f.wait(0, cuda::memory_order_acquire);
  *seen = f.load();
}

__global__ void lock_add(int* lock, int* value, int times) {
  for (int i = 0; i < times; ++i) {
    while (atomicCAS(lock, 0, 1) != 0) __nanosleep(50);
    __threadfence();
    *(volatile int*)value += 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

// Lane 0 waits for lane 1, which signals only after the point where the two would meet again.
__global__ void lanes(volatile int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (*flag == 0) {
    }
    out[0] = 7;
  }
  if (threadIdx.x == 1) {
    *flag = 1;
    out[1] = 8;
  }
}

__global__ void hoisted(int* flag) {
  while (*flag == 0) {
  }
}

__global__ void out_of_bounds(int* p, int n) { p[n] = 1; }

struct Pointers { int* p[8]; };
__global__ void by_struct(Pointers pointers, int n, int value) {
  for (int i = 0; i < n; ++i) pointers.p[i][threadIdx.x] = value + i;
}

__device__ int counter = 5;
__constant__ int factor = 3;
__global__ void globals(int* out) { *out = (counter++) * factor; }
}

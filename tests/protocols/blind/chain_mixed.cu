// A chain with mixed scopes: block A tells block B of its device (gpu), B tells block C of the next device (sys), C
// tells block D of its device (gpu), D reads what A wrote and tells A (sys), who reuses the words for the next epoch.
// EXPECT 1 scope: A releases to B at cta scope
// EXPECT 2 scope: B releases to C at gpu scope, across devices
// EXPECT 3 race: B polls relaxed; it releases to C what it never acquired from A
// EXPECT 4 race: C passes on by a relaxed store without a fence
// EXPECT 5 none: B and C use relaxed accesses and fences, each of the narrowest scope that its hop allows
// EXPECT 6 scope: D tells A at gpu scope; D's reads are not released to the other device
#include "common.h"

constexpr int kThreads = 32, kEpochs = 4;

struct Chain {
  unsigned* data;  // [kThreads] on device 1
  unsigned *ab, *bc, *cd, *da;
  unsigned* out;  // [kEpochs][kThreads]
};

DEV void st_release_gpu(unsigned* p, unsigned v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEV void wait_gpu(const unsigned* p, unsigned v) {
  unsigned x;
  do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
  while (x < v);
}
DEV void wait_relaxed(const unsigned* p, unsigned v) {
  while (ld_relaxed(p) < v) {
  }
}
DEV void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
DEV void fence_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

__global__ void device0(Chain c) {
  for (unsigned e = 1; e <= kEpochs; ++e) {
    if (blockIdx.x == 0) {  // A
      if (threadIdx.x == 0) wait_ge(c.da, e - 1);
      __syncthreads();
      c.data[threadIdx.x] = e * 100 + threadIdx.x;
      __syncthreads();
      if (threadIdx.x) continue;
      if (BUG == 1)
        asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(c.ab), "r"(e) : "memory");
      else
        st_release_gpu(c.ab, e);
    } else if (threadIdx.x == 0) {  // B
      if (BUG == 3 || BUG == 5)
        wait_relaxed(c.ab, e);
      else
        wait_gpu(c.ab, e);
      if (BUG == 5) fence_gpu();
      if (BUG == 5) fence_sys();
      if (BUG == 2)
        st_release_gpu(c.bc, e);
      else if (BUG == 5)
        st_relaxed(c.bc, e);
      else
        st_release(c.bc, e);
    }
  }
}

__global__ void device1(Chain c) {
  for (unsigned e = 1; e <= kEpochs; ++e) {
    if (blockIdx.x == 1) {  // C
      if (threadIdx.x) continue;
      if (BUG == 5) {
        wait_relaxed(c.bc, e);
        fence_sys();
        fence_gpu();
        st_relaxed(c.cd, e);
      } else {
        wait_ge(c.bc, e);
        BUG == 4 ? st_relaxed(c.cd, e) : st_release_gpu(c.cd, e);
      }
    } else {  // D
      if (threadIdx.x == 0) wait_gpu(c.cd, e);
      __syncthreads();
      c.out[(e - 1) * kThreads + threadIdx.x] = c.data[threadIdx.x];
      __syncthreads();
      if (threadIdx.x == 0) BUG == 6 ? st_release_gpu(c.da, e) : st_release(c.da, e);
    }
  }
}

int main() {
  peers(2);
  const Chain c = {alloc<unsigned>(1, kThreads), alloc<unsigned>(0, 1),
                   alloc<unsigned>(1, 1),        alloc<unsigned>(1, 1),
                   alloc<unsigned>(0, 1),        alloc<unsigned>(1, kEpochs * kThreads)};
  sync_all(2);
  CK(cudaSetDevice(0));
  device0<<<2, kThreads>>>(c);
  CK(cudaGetLastError());
  CK(cudaSetDevice(1));
  device1<<<2, kThreads>>>(c);
  CK(cudaGetLastError());
  sync_all(2);
  long wrong = 0;
  const auto out = get(1, c.out, kEpochs * kThreads);
  for (int j = 0; j < kEpochs * kThreads; ++j)
    wrong += out[j] != unsigned((j / kThreads + 1) * 100 + j % kThreads);
  return finish(wrong, 2);
}

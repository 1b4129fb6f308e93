// Chase-Lev deque on device 0: the owner pushes and takes, two devices steal. Everything is sequentially consistent by fences.
// EXPECT 1 value: no fence between the owner's store of bottom and its load of top (store buffering)
// EXPECT 2 race|value: bottom is published relaxed and tasks are weak
// EXPECT 3 value: thief reads bottom without the fence between top and bottom
#include "common.h"
constexpr int R = 3, N = 48;
struct Deque {
  int top, bottom;
  int pad[30];
  unsigned task[64];
};
DEV int ld(int* p) {
  int v;
  asm volatile("ld.relaxed.sys.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEV int lda(int* p) {
  int v;
  asm volatile("ld.acquire.sys.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEV void st(int* p, int v) {
  asm volatile("st.relaxed.sys.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEV void stl(int* p, int v) {
  asm volatile("st.release.sys.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
#define SC asm volatile("fence.sc.sys;" ::: "memory")
__global__ void Owner(Deque* d, unsigned* done) {
  for (int k = 0; k < N;) {
    for (int j = 0; j < 3 && k < N; ++j, ++k) {
      const int b = ld(&d->bottom);
#if BUG == 2
      d->task[b % 64] = k;
      st(&d->bottom, b + 1);
#else
      st_relaxed(d->task + b % 64, k);
      stl(&d->bottom, b + 1);
#endif
    }
    for (int j = 0; j < 2; ++j) {
      const int b = ld(&d->bottom) - 1;
      st(&d->bottom, b);
#if BUG != 1
      SC;
#endif
      int t = ld(&d->top);
      if (t > b) {
        st(&d->bottom, b + 1);
        continue;
      }
      const unsigned x = ld_relaxed(d->task + b % 64);
      if (t == b) {
        const bool won = atomicCAS_system(&d->top, t, t + 1) == t;
        SC;
        st(&d->bottom, b + 1);
        if (!won) continue;
      }
      atomicAdd_system(done + x, 1);
    }
  }
  // the rest
  while (true) {
    const int b = ld(&d->bottom) - 1;
    st(&d->bottom, b);
    SC;
    int t = ld(&d->top);
    if (t > b) {
      st(&d->bottom, b + 1);
      break;
    }
    const unsigned x = ld_relaxed(d->task + b % 64);
    if (t == b) {
      const bool won = atomicCAS_system(&d->top, t, t + 1) == t;
      SC;
      st(&d->bottom, b + 1);
      if (won) atomicAdd_system(done + x, 1);
      break;
    }
    atomicAdd_system(done + x, 1);
  }
}
__global__ void Thief(Deque* d, unsigned* done) {
  for (int tries = 0; tries < 60; ++tries) {
    int t = lda(&d->top);
#if BUG != 3
    SC;
#endif
    const int b = lda(&d->bottom);
    if (t >= b) continue;
#if BUG == 2
    const unsigned x = d->task[t % 64];
#else
    const unsigned x = ld_relaxed(d->task + t % 64);
#endif
    SC;
    if (atomicCAS_system(&d->top, t, t + 1) == t) atomicAdd_system(done + x, 1);
  }
}
int main() {
  peers(R);
  Deque* d = alloc<Deque>(0, 1);
  unsigned* done = alloc<unsigned>(0, 64);
  sync_all(R);
  for (int r = 1; r < R; ++r) {
    CK(cudaSetDevice(r));
    Thief<<<1, 1>>>(d, done);
  }
  CK(cudaSetDevice(0));
  Owner<<<1, 1>>>(d, done);
  sync_all(R);
  long wrong = 0;
  auto v = get(0, done, 64);
  for (int i = 0; i < N; ++i) wrong += v[i] != 1;
  return finish(wrong, R);
}

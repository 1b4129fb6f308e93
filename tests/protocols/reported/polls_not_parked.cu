// Loops that wait for flags of the own device and store nothing new, in the shapes that communication kernels have. Variant
// 0 runs them all with the flags raised; in the others the flags never come, so the run is a deadlock.
// EXPECT 1 hang: one flag
// EXPECT 2 hang: two flags in each round
// EXPECT 3 hang: four flags in each round, by an inner loop
// EXPECT 4 hang: each lane polls one of two flags, all vote
// EXPECT 5 hang: two lanes poll, the others vote along
// EXPECT 6 hang: one flag and a look at the clock, which would trap much later
// EXPECT 7 hang: the same with a vote
// EXPECT 8 hang: waits for a shared word, and would store another one if the flag came
// EXPECT 9 hang: waits for a shared word and stores the flag's value, always the same, in every round
// EXPECT 10 hang: any lane still without its flag keeps the warp in the loop
// EXPECT 11 hang: three flags, all of them looked at again until all are there
// EXPECT 12 hang: a vector of four flags
#include "common.h"
constexpr int SHAPES = 12;
constexpr long long LATE = 200'000'000'000;
constexpr unsigned ALL = 0xffffffffu;
DEV unsigned look(const unsigned* p) { return *(const volatile unsigned*)p; }
DEV void late(long long since) {
  if (clock64() - since > LATE) __trap();
}
template <int SHAPE>
__global__ void Wait(unsigned* flag, unsigned raised) {
  __shared__ volatile unsigned go, copy;
  if (threadIdx.x == 0) {
    go = raised;
    copy = 0;
  }
  __syncthreads();
  const long long since = clock64();
  if (SHAPE == 1)
    while (look(flag) == 0) {
    }
  if (SHAPE == 2)
    while ((look(flag) & look(flag + 1)) == 0) {
    }
  if (SHAPE == 3)
    for (unsigned all = 0; all == 0;) {
      all = 1;
      for (int i = 0; i < 4; ++i) all &= look(flag + i);
    }
  if (SHAPE == 4)
    while (!__all_sync(ALL, look(flag + threadIdx.x % 2) != 0)) {
    }
  if (SHAPE == 5)
    for (bool there = false; !there;) {
      const unsigned mine = threadIdx.x % 32 < 2 ? look(flag + threadIdx.x % 32) : 1;
      there = __all_sync(ALL, mine != 0);
    }
  if (SHAPE == 6)
    while (look(flag) == 0) late(since);
  if (SHAPE == 7)
    while (!__all_sync(ALL, look(flag) != 0)) late(since);
  if (SHAPE == 8)
    while (go == 0)
      if (ld_acquire(flag) != 0) copy = 1;
  if (SHAPE == 9)
    while (go == 0) copy = ld_acquire(flag);
  if (SHAPE == 10)
    while (__any_sync(ALL, look(flag) == 0)) {
    }
  if (SHAPE == 11)
    for (bool done = false; !done;) {
      done = true;
      for (int i = 0; i < 3; ++i) done = (look(flag + i) != 0) & done;
    }
  if (SHAPE == 12) {
    unsigned a, b, c, d;
    do {
      asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                   : "l"(flag)
                   : "memory");
    } while (a == 0 || b == 0 || c == 0 || d == 0);
  }
}
template <int SHAPE>
static void Launch(unsigned* flags) {
  const bool raised = BUG == 0;
  if (raised || BUG == SHAPE) Wait<SHAPE><<<1, 64>>>(flags, raised);
  if constexpr (SHAPE < SHAPES) Launch<SHAPE + 1>(flags);
}
int main() {
  peers(1);
  unsigned* flags = alloc<unsigned>(0, 4);
  if (BUG == 0) put(0, flags, std::vector<unsigned>(4, 1));
  CK(cudaDeviceSynchronize());
  Launch<1>(flags);
  return finish(0, 1);
}

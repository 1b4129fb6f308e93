// Ways to wait for a flag on the peer device: loads, atomics, sleeps, votes, counters and clocks. Variant 0 runs them all
// and the peer raises the flag; in the others it never comes.
// EXPECT 1 hang: acquire loads
// EXPECT 2 hang: acquire loads with a sleep
// EXPECT 3 hang: acquire loads and a vote
// EXPECT 4 hang: acquire loads, a vote and a sleep
// EXPECT 5 hang: an atomic addition of nothing
// EXPECT 6 hang: compare-and-swap that never succeeds
// EXPECT 7 hang: acquire loads, counted; the kernel traps after four thousand million of them
// EXPECT 8 hang: acquire loads with a time limit that traps
// EXPECT 9 hang: one of two flags
// EXPECT 10 hang: compare-and-swap with a sleep
// EXPECT 11 hang: sleeps that get longer
#include "common.h"
constexpr int WAYS = 11;
constexpr unsigned ALL = 0xffffffffu;
template <int WAY>
__global__ void Wait(unsigned* flag) {
  const long long since = clock64();
  unsigned rounds = 0, pause = 8;
  if (WAY == 1)
    while (ld_acquire(flag) == 0) {
    }
  if (WAY == 2)
    while (ld_acquire(flag) == 0) __nanosleep(64);
  if (WAY == 3)
    while (!__all_sync(ALL, ld_acquire(flag) != 0)) {
    }
  if (WAY == 4)
    while (!__all_sync(ALL, ld_acquire(flag) != 0)) __nanosleep(64);
  if (WAY == 5)
    while (atomicAdd_system(flag, 0) == 0) {
    }
  if (WAY == 6)
    while (atomicCAS_system(flag, 1, 1) != 1) {
    }
  if (WAY == 7)
    while (ld_acquire(flag) == 0)
      if (++rounds == ALL) __trap();
  if (WAY == 8)
    while (ld_acquire(flag) == 0)
      if (clock64() - since > 2'000'000'000) {
        printf("no flag\n");
        __trap();
      }
  if (WAY == 9)
    while (ld_acquire(flag) == 0 && ld_acquire(flag + 1) == 0) {
    }
  if (WAY == 10)
    while (atomicCAS_system(flag, 1, 1) != 1) __nanosleep(32);
  if (WAY == 11)
    for (; ld_acquire(flag) == 0; pause = pause < 256 ? 2 * pause : pause) __nanosleep(pause);
}
__global__ void Raise(unsigned* flag) { st_release(flag, 1); }
template <int WAY>
static void Launch(unsigned* flags) {
  if (BUG == 0 || BUG == WAY) Wait<WAY><<<1, 32>>>(flags);
  if constexpr (WAY < WAYS) Launch<WAY + 1>(flags);
}
int main() {
  peers(2);
  unsigned* flags = alloc<unsigned>(1, 2);
  sync_all(2);
  CK(cudaSetDevice(0));
  Launch<1>(flags);
  CK(cudaSetDevice(1));
  if (BUG == 0) Raise<<<1, 1>>>(flags);
  return finish(0, 2);
}

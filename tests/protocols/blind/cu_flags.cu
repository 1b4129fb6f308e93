// Two devices exchange messages through inboxes with cuda::atomic_ref flags of system scope: one
// tells that an inbox is full, one that it may be overwritten.
// EXPECT 1 race: the full flag is stored with memory_order_relaxed
// EXPECT 2 scope|race: the flags are atomic_refs of thread_scope_device
// EXPECT 3 race: the full flag is loaded with memory_order_relaxed and no fence follows
// EXPECT 4 weak_spin|race: the full flag is polled by ordinary loads
// EXPECT 5 scope|race: a relaxed store after a release fence of thread_scope_device
// EXPECT 6 none: relaxed accesses with fences of system scope on both sides
#include "common.h"

#include <cuda/atomic>

constexpr int kN = 64, kEpochs = 4, kDev = 2;
constexpr cuda::thread_scope kScope =
    BUG == 2 ? cuda::thread_scope_device : cuda::thread_scope_system;

DEV void raise_full(unsigned* flag, unsigned v) {
  cuda::atomic_ref<unsigned, kScope> f(*flag);
  if (BUG == 5) cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
  if (BUG == 6) cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_system);
  const bool relaxed = BUG == 1 || BUG == 5 || BUG == 6;
  f.store(v, relaxed ? cuda::memory_order_relaxed : cuda::memory_order_release);
}
DEV void await_full(unsigned* flag, unsigned v) {
  if (BUG == 4) {
    unsigned seen;
    do {
      asm volatile("ld.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    } while (seen < v);
    __threadfence_system();
    return;
  }
  cuda::atomic_ref<unsigned, kScope> f(*flag);
  const bool relaxed = BUG == 3 || BUG == 6;
  while (f.load(relaxed ? cuda::memory_order_relaxed : cuda::memory_order_acquire) < v) {
  }
  if (BUG == 6) cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_system);
}

// flags[0]: my inbox is full; flags[1]: the peer has read what I sent.
__global__ void work(int dev, const unsigned* mine, unsigned* theirs, unsigned* flags_mine,
                     unsigned* flags_theirs, unsigned* out) {
  const unsigned t = threadIdx.x;
  for (unsigned e = 0; e < kEpochs; ++e) {
    theirs[t] = 1000 * dev + 100 * e + t;
    __syncthreads();
    if (t == 0) {
      raise_full(flags_theirs, e + 1);
      await_full(flags_mine, e + 1);
    }
    __syncthreads();
    out[e * kN + t] = mine[(t + 11) % kN];
    __syncthreads();
    if (t == 0) {
      cuda::atomic_ref<unsigned, kScope>(flags_theirs[1]).store(e + 1, cuda::memory_order_release);
      cuda::atomic_ref<unsigned, kScope> read(flags_mine[1]);
      while (read.load(cuda::memory_order_acquire) < e + 1) {
      }
    }
    __syncthreads();
  }
}

int main() {
  peers(kDev);
  unsigned *inbox[kDev], *flags[kDev], *out[kDev];
  for (int d = 0; d < kDev; ++d) {
    inbox[d] = alloc<unsigned>(d, kN);
    flags[d] = alloc<unsigned>(d, 2);
    out[d] = alloc<unsigned>(d, kEpochs * kN);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, kN>>>(d, inbox[d], inbox[1 - d], flags[d], flags[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kEpochs * kN);
    for (int i = 0; i < kEpochs * kN; ++i)
      wrong += r[i] != static_cast<unsigned>(1000 * (1 - d) + 100 * (i / kN) + (i % kN + 11) % kN);
  }
  return finish(wrong, kDev);
}

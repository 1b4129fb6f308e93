// A barrier of 4 devices with a counter and a generation: the last arriver resets the counter, then releases the next
// generation for which the others poll; between barriers every device reads what its neighbour wrote.
// EXPECT 1 hang: the others poll the counter for the full count, which the last arriver resets at once
// EXPECT 2 race: the generation is polled by relaxed loads without a fence
// EXPECT 3 race: arrivals are relaxed atomics without a fence, earlier writes are not released
// EXPECT 4 scope: the generation is released at gpu scope
// EXPECT 5 none: the counter is reset by an ordinary store, everybody else's next arrival is ordered after it
// EXPECT 6 hang: the counter is reset some time after the generation was released, which erases early arrivals
#include "common.h"

static const int D = 4, N = 32, ROUNDS = 4;

struct Barrier {
  unsigned count, generation;
};
struct Buffers {
  unsigned* of[D];
};

DEV void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

DEV void arrive_and_wait(Barrier* b, unsigned round) {
  if (BUG != 3) fence();
  unsigned before = atomicAdd_system(&b->count, 1);
  fence();
  if (before == D - 1) {
    if (BUG == 5) b->count = 0;
    if (BUG != 5 && BUG != 6) st_relaxed(&b->count, 0);
#if BUG == 4
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&b->generation), "r"(round)
                 : "memory");
#else
    st_release(&b->generation, round);
#endif
    if (BUG == 6) {
      __nanosleep(20000);
      st_relaxed(&b->count, 0);
    }
    return;
  }
#if BUG == 1
  while (ld_acquire(&b->count) != D) {
  }
#elif BUG == 2
  while (ld_relaxed(&b->generation) < round) {
  }
#else
  wait_ge(&b->generation, round);
#endif
}

static __global__ void work(Barrier* b, Buffers buffers, unsigned* total, unsigned rank) {
  unsigned i = threadIdx.x;
  for (unsigned r = 1; r <= ROUNDS; ++r) {
    buffers.of[rank][i] = r * (rank + 1) + i;
    __syncthreads();
    if (i == 0) arrive_and_wait(b, 2 * r - 1);
    __syncthreads();
    total[i] += buffers.of[(rank + 1) % D][i];
    __syncthreads();
    if (i == 0) arrive_and_wait(b, 2 * r);
    __syncthreads();
  }
}

int main() {
  peers(D);
  Barrier* b = alloc<Barrier>(0, 1);
  Buffers buffers;
  unsigned* total[D];
  for (int d = 0; d < D; ++d) {
    buffers.of[d] = alloc<unsigned>(d, N);
    total[d] = alloc<unsigned>(d, N);
  }
  sync_all(D);
  for (unsigned d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, N>>>(b, buffers, total[d], d);
  }
  sync_all(D);
  long wrong = 0;
  for (unsigned d = 0; d < D; ++d) {
    std::vector<unsigned> v = get(d, total[d], N);
    for (unsigned i = 0; i < N; ++i)
      wrong += v[i] != (1 + 2 + 3 + 4) * ((d + 1) % D + 1) + ROUNDS * i;
  }
  return finish(wrong, D);
}

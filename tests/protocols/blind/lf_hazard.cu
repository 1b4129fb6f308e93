// Hazard pointers: a writer on device 0 publishes versions in two buffers that alternate; readers on devices 1 to 3
// announce the buffer they read, fence.sc, and check that it is still current; the writer waits for them before reuse.
// EXPECT 1 race: readers have no fence.sc between the announcement and the check: the writer may miss the announcement
// EXPECT 2 race: the writer has no fence.sc between publishing and looking at the announcements
// EXPECT 3 race: the announcement is withdrawn by a relaxed store, the reads are not ordered before the reuse
// EXPECT 4 race: the writer looks at the announcements by relaxed loads without a fence
// EXPECT 5 race: readers do not check again after the announcement
// EXPECT 6 race: the writer looks at the announcements of the first two readers only
#include "common.h"

static const int D = 4, N = 8, VERSIONS = 8, READS = 6;

struct Store {
  unsigned current, hazard[D], buffer[2][N];
};

DEV void fence_sc() { asm volatile("fence.sc.sys;" ::: "memory"); }

static __global__ void writer(Store* s) {
  for (unsigned v = 1; v <= VERSIONS; ++v) {
    unsigned b = v % 2;  // the buffer of version v - 2; the current one is the other
    if (BUG != 2) fence_sc();
    for (int r = 1; r < (BUG == 6 ? D - 1 : D); ++r) {
      while ((BUG == 4 ? ld_relaxed(&s->hazard[r]) : ld_acquire(&s->hazard[r])) == b + 1) {
      }
    }
    for (int i = 0; i < N; ++i) s->buffer[b][i] = v * 100 + i;
    st_release(&s->current, b);
  }
}

static __global__ void reader(Store* s, int rank, unsigned* wrong) {
  for (int n = 0; n < READS; ++n) {
    unsigned b = ld_acquire(&s->current);
    for (;;) {
      st_release(&s->hazard[rank], b + 1);
      if (BUG != 1) fence_sc();
      if (BUG == 5) break;
      unsigned now = ld_acquire(&s->current);
      if (now == b) break;
      b = now;
    }
    unsigned first = s->buffer[b][0];
    for (unsigned i = 1; i < N; ++i) *wrong += s->buffer[b][i] != first + i;
#if BUG == 3
    st_relaxed(&s->hazard[rank], 0);
#else
    st_release(&s->hazard[rank], 0);
#endif
  }
}

int main() {
  peers(D);
  Store h = {};
  for (unsigned i = 0; i < N; ++i) h.buffer[0][i] = h.buffer[1][i] = i;
  Store* s = alloc<Store>(0, 1);
  put(0, s, std::vector<Store>{h});
  unsigned* bad[D] = {};
  for (int d = 1; d < D; ++d) bad[d] = alloc<unsigned>(d, 1);
  sync_all(D);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      if (d == 0)
        writer<<<1, 1>>>(s);
      else
        reader<<<1, 1>>>(s, d, bad[d]);
    }
    sync_all(D);
  }
  long wrong = 0;
  for (int d = 1; d < D; ++d) wrong += get(d, bad[d], 1)[0];
  return finish(wrong, D);
}

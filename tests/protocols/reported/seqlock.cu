// Seqlock: device 0 writes versions of a record, devices 1 and 2 read until they have the last one.
// EXPECT 1 race: record read and written weak
// EXPECT 2 value: no fence between the data and the second look at the sequence
// EXPECT 3 value: no fence between the odd sequence and the data
// EXPECT 4 value: the sequence is looked at only once
#include "common.h"
constexpr int R = 3, W = 8;
constexpr unsigned V = 40;
DEV unsigned ldw(const unsigned* p) {
#if BUG == 1
  return *p;
#else
  return ld_relaxed(p);
#endif
}
DEV void stw(unsigned* p, unsigned v) {
#if BUG == 1
  *p = v;
#else
  st_relaxed(p, v);
#endif
}
__global__ void Writer(unsigned* seq, unsigned* data) {
  for (unsigned v = 1; v <= V; ++v) {
    st_relaxed(seq, 2 * v - 1);
#if BUG != 3
    __threadfence_system();
#endif
    for (int i = 0; i < W; ++i) stw(data + i, v * (i + 1));
    st_release(seq, 2 * v);
  }
}
__global__ void Reader(const unsigned* seq, const unsigned* data, int* torn) {
  int bad = 0;
  unsigned last = 0;
  while (last < V) {
    const unsigned s = ld_acquire(seq);
    if (s & 1) continue;
    unsigned w[W];
    for (int i = 0; i < W; ++i) w[i] = ldw(data + i);
#if BUG != 2
    __threadfence_system();
#endif
#if BUG != 4
    if (ld_relaxed(seq) != s) continue;
#endif
    for (int i = 0; i < W; ++i) bad += w[i] != s / 2 * (i + 1);
    last = s / 2;
  }
  *torn = bad;
}
int main() {
  peers(R);
  unsigned *seq = alloc<unsigned>(0, 1), *data = alloc<unsigned>(0, W);
  int* torn[R];
  for (int r = 0; r < R; ++r) torn[r] = alloc<int>(r, 1);
  sync_all(R);
  for (int r = 1; r < R; ++r) {
    CK(cudaSetDevice(r));
    Reader<<<1, 1>>>(seq, data, torn[r]);
  }
  CK(cudaSetDevice(0));
  Writer<<<1, 1>>>(seq, data);
  sync_all(R);
  long wrong = 0;
  for (int r = 1; r < R; ++r) wrong += get(r, torn[r], 1)[0];
  return finish(wrong, R);
}

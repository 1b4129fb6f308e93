// All-reduce with LL packets: 32 bits of data and 32 bits of flag in one 64-bit scalar, two buffers in turn.
// EXPECT 1 race: packet stored weak
// EXPECT 2 race: packet stored as a vector of two words, read as one of 64 bits (mixed size)
// EXPECT 3 value: flag is the same in all calls
// EXPECT 4 value: flag polled, then the data by another relaxed load
#include "common.h"
constexpr int R = 4, N = 512, T = 128, CALLS = 6;
struct Ptrs {
  unsigned long long* buf[R];
};
DEV void send(unsigned long long* p, unsigned data, unsigned flag) {
#if BUG == 1
  asm volatile("st.global.u64 [%0], %1;" ::"l"(p), "l"((unsigned long long)flag << 32 | data)
               : "memory");
#elif BUG == 2 || BUG == 4
  asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(data), "r"(flag)
               : "memory");
#else
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p),
               "l"((unsigned long long)flag << 32 | data)
               : "memory");
#endif
}
DEV unsigned receive(unsigned long long* p, unsigned flag) {
#if BUG == 4
  while (ld_relaxed((unsigned*)p + 1) != flag) {
  }
  return ld_relaxed((unsigned*)p);
#else
  unsigned long long v;
  do {
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  } while ((unsigned)(v >> 32) != flag);
  return (unsigned)v;
#endif
}
__global__ void AllReduce(Ptrs p, int rank, const unsigned* in, unsigned* out, unsigned epoch) {
#if BUG == 3
  const unsigned flag = 1;
#else
  const unsigned flag = epoch;
#endif
  const int base = (epoch & 1) * R * N;
  for (int i = threadIdx.x; i < N; i += T) {
    for (int r = 0; r < R; ++r) send(p.buf[r] + base + rank * N + i, in[i] * epoch, flag);
    unsigned sum = 0;
    for (int r = 0; r < R; ++r) sum += receive(p.buf[rank] + base + r * N + i, flag);
    out[i] = sum;
  }
}
int main() {
  peers(R);
  Ptrs p;
  unsigned *in[R], *out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    p.buf[r] = alloc<unsigned long long>(r, 2 * R * N);
    in[r] = alloc<unsigned>(r, N);
    for (int c = 0; c < CALLS; ++c) out[r][c] = alloc<unsigned>(r, N);
    std::vector<unsigned> v(N);
    for (int i = 0; i < N; ++i) v[i] = r + i + 1;
    put(r, in[r], v);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      AllReduce<<<1, T>>>(p, r, in[r], out[r][c], c + 1);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], N);
      for (int i = 0; i < N; ++i) wrong += v[i] != (c + 1) * (unsigned)(6 + 4 * (i + 1));
    }
  return finish(wrong, R);
}

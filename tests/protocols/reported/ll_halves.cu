// LL between two devices: 16 bytes with two words and a flag beside each, stored as one vector, slots used in turn.
// EXPECT 1 value: the flags are compared with a first load, the words come from a second one
// EXPECT 2 value: the flag of the second word is not compared, and the vector is stored in two halves
// EXPECT 3 value: the flag is not the epoch but 1, and nobody clears it
// EXPECT 4 portability|value: one flag for a vector of three words
// EXPECT 5 none: two vectors of 8 bytes, each with its flag
#include "common.h"

static const int D = 2, N = 32, EPOCHS = 6;

DEV void st4(uint4* p, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}
DEV void st2(uint2* p, unsigned a, unsigned b) {
  asm volatile("st.volatile.global.v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(a), "r"(b) : "memory");
}
DEV uint4 ld4(const uint4* p) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
DEV uint2 ld2(const uint2* p) {
  uint2 v;
  asm volatile("ld.volatile.global.v2.u32 {%0,%1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(p)
               : "memory");
  return v;
}

static __global__ void exchange(uint4* mine, uint4* theirs, unsigned* out, unsigned me) {
  const unsigned t = threadIdx.x;
  unsigned x = me + t, y = 2 * me + t;
  for (unsigned e = 1; e <= EPOCHS; ++e) {
    const unsigned flag = BUG == 3 ? 1 : e;
    uint4 *to = theirs + e % 2 * N + t, *from = mine + e % 2 * N + t;
    if (BUG == 2 || BUG == 5) {
      st2(reinterpret_cast<uint2*>(to), x, flag);
      st2(reinterpret_cast<uint2*>(to) + 1, y, flag);
    } else if (BUG == 4) {
      st4(to, x, y, 0, flag);
    } else {
      st4(to, x, flag, y, flag);
    }
    uint4 v;
    if (BUG == 5) {
      uint2 a, b;
      do a = ld2(reinterpret_cast<uint2*>(from));
      while (a.y != flag);
      do b = ld2(reinterpret_cast<uint2*>(from) + 1);
      while (b.y != flag);
      v = {a.x, a.y, b.x, b.y};
    } else if (BUG == 4) {
      do v = ld4(from);
      while (v.w != flag);
      v.z = v.y;
    } else if (BUG == 1) {
      const volatile unsigned* w = reinterpret_cast<const volatile unsigned*>(from);
      while (w[1] != flag || w[3] != flag) {
      }
      v.x = w[0], v.z = w[2];
    } else {
      do v = ld4(from);
      while (v.y != flag || (BUG != 2 && v.w != flag));
    }
    x += v.x;
    y += v.z;
  }
  out[t] = x;
  out[N + t] = y;
}

int main() {
  peers(D);
  uint4* in[D];
  unsigned* out[D];
  for (int d = 0; d < D; ++d) in[d] = alloc<uint4>(d, 2 * N), out[d] = alloc<unsigned>(d, 2 * N);
  sync_all(D);
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    exchange<<<1, N>>>(in[d], in[1 - d], out[d], d);
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> o[2] = {get(0, out[0], 2 * N), get(1, out[1], 2 * N)};
  for (unsigned t = 0; t < N; ++t) {
    unsigned x[2] = {t, 1 + t}, y[2] = {t, 2 + t};
    for (int e = 0; e < EPOCHS; ++e) {
      const unsigned s = x[0] + x[1], u = y[0] + y[1];
      x[0] = x[1] = s, y[0] = y[1] = u;
    }
    for (int d = 0; d < D; ++d) wrong += o[d][t] != x[d] || o[d][N + t] != y[d];
  }
  return finish(wrong, D);
}

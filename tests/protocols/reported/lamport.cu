// Lamport one-shot all-reduce: -0.0 means "not there yet", three buffers, each call clears the one that is next but one.
// EXPECT 0 portability
// EXPECT 1 none: two buffers suffice here (argued: not a bug)
// EXPECT 2 deadlock: an input of -0.0 is sent as it is
// EXPECT 3 race: cleared with weak stores
// EXPECT 4 race: polled with weak loads
#include "common.h"
constexpr int R = 3, N4 = 256, T = 128, CALLS = 7;
#if BUG == 1
constexpr int B = 2;
#else
constexpr int B = 3;
#endif
struct Ptrs {
  float4* buf[R];
};
DEV float4 ld4(const float4* p) {
  float4 v;
#if BUG == 4
  asm volatile("ld.global.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
#else
  asm volatile("ld.volatile.global.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
#endif
  return v;
}
DEV void st4(float4* p, float4 v) {
  asm volatile("st.volatile.global.v4.f32 [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}
DEV bool empty(float f) { return __float_as_uint(f) == 0x80000000u; }
DEV float clean(float f) {
#if BUG != 2
  if (empty(f)) f = 0;
#endif
  return f;
}
__global__ void AllReduce(Ptrs p, int rank, const float4* in, float4* out, int call) {
  const float4 none = {-0.f, -0.f, -0.f, -0.f};
  for (int i = threadIdx.x; i < N4; i += T) {
    float4 v = in[i];
    v.x = clean(v.x);
    v.y = clean(v.y);
    v.z = clean(v.z);
    v.w = clean(v.w);
    for (int r = 0; r < R; ++r) st4(p.buf[r] + ((call % B) * R + rank) * N4 + i, v);
    for (int r = 0; r < R; ++r) {
      float4* c = p.buf[rank] + (((call + B - 1) % B) * R + r) * N4 + i;
#if BUG == 3
      *c = none;
#else
      st4(c, none);
#endif
    }
    float4 sum = {0, 0, 0, 0};
    for (int r = 0; r < R; ++r) {
      float4 w;
      do w = ld4(p.buf[rank] + ((call % B) * R + r) * N4 + i);
      while (empty(w.x) || empty(w.y) || empty(w.z) || empty(w.w));
      sum.x += w.x;
      sum.y += w.y;
      sum.z += w.z;
      sum.w += w.w;
    }
    out[i] = sum;
  }
}
int main() {
  peers(R);
  Ptrs p;
  float *in[R], *out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    p.buf[r] = (float4*)alloc<float>(r, B * R * N4 * 4);
    in[r] = alloc<float>(r, N4 * 4);
    put(r, (float*)p.buf[r], std::vector<float>(B * R * N4 * 4, -0.f));
    for (int c = 0; c < CALLS; ++c) out[r][c] = alloc<float>(r, N4 * 4);
    std::vector<float> v(N4 * 4);
    for (int i = 0; i < N4 * 4; ++i) v[i] = i % 5 ? (float)(r + i) : -0.f;
    put(r, in[r], v);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      AllReduce<<<1, T>>>(p, r, (float4*)in[r], (float4*)out[r][c], c);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], N4 * 4);
      for (int i = 0; i < N4 * 4; ++i) wrong += v[i] != (i % 5 ? 3 + 3 * i : 0);
    }
  return finish(wrong, R);
}

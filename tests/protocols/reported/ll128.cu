// LL128: a warp stores 16 bytes per lane, lanes 7, 15, 23, 31 have the flag in their second half.
// EXPECT 0 portability
// EXPECT 1 value: only lanes with a flag look again, the others keep what they got first
// EXPECT 2 race: packets stored weak
// EXPECT 3 value: data lanes and flag lanes store in two instructions
#include "common.h"
constexpr int R = 2, LINES = 64, T = 64, CALLS = 4;
typedef unsigned long long u64;
DEV void st2(u64* p, u64 a, u64 b) {
#if BUG == 2
  asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
#else
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
#endif
}
DEV void ld2(u64* p, u64& a, u64& b) {
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}
__global__ void Exchange(u64* mine, u64* theirs, const u64* in, u64* out, u64 epoch) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool flagLane = lane % 8 == 7;
  const int base = (epoch & 1) * LINES * 16;
  for (int line = warp * 4; line < LINES; line += T / 32 * 4) {
    const int at = line * 16 + lane * 2;  // in words of 8 bytes
    const u64 a = in[at] + epoch, b = flagLane ? epoch : in[at + 1] + epoch;
#if BUG == 3
    if (!flagLane) st2(theirs + base + at, a, b);
    __syncwarp();
    if (flagLane) st2(theirs + base + at, a, b);
#else
    st2(theirs + base + at, a, b);
#endif
    u64 c, d;
#if BUG == 1
    ld2(mine + base + at, c, d);
    while (flagLane && d != epoch) ld2(mine + base + at, c, d);
    __syncwarp();
#else
    bool again;
    do {
      ld2(mine + base + at, c, d);
      again = flagLane && d != epoch;
    } while (__any_sync(~0u, again));
#endif
    out[at] = c;
    out[at + 1] = flagLane ? 0 : d;
  }
}
int main() {
  peers(R);
  const int W = LINES * 16;
  u64 *buf[R], *in[R], *out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    buf[r] = alloc<u64>(r, 2 * W);
    in[r] = alloc<u64>(r, W);
    for (int c = 0; c < CALLS; ++c) out[r][c] = alloc<u64>(r, W);
    std::vector<u64> v(W);
    for (int i = 0; i < W; ++i) v[i] = 100 * (r + 1) + i;
    put(r, in[r], v);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      Exchange<<<1, T>>>(buf[r], buf[1 - r], in[r], out[r][c], c + 1);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], W);
      for (int i = 0; i < W; ++i)
        wrong += v[i] != (i % 16 == 15 ? 0 : 100 * (2 - r) + (u64)i + c + 1);
    }
  return finish(wrong, R);
}

// All-reduce in which a negative zero says that nothing has come yet. A thread has one vector only: it sends it to all
// ranks, empties its part of the buffer of the call after the next, and polls.
// EXPECT 0 portability
// EXPECT 1 hang|value: two buffers: a rank that is still to empty the next one may wipe out what a fast peer has sent
// EXPECT 2 hang: a negative zero of the input is sent as it is
// EXPECT 3 race: emptied by weak stores
// EXPECT 4 race|weak_spin: polled by weak loads
#include "common.h"
constexpr int R = 3, T = 64, CALLS = 6, BUFFERS = BUG == 1 ? 2 : 3;
constexpr unsigned NOTHING = 0x80000000u;  // bits of -0.0f
struct Ranks {
  uint4* slots[R];  // [buffer][sender][thread]
};
DEV void put4(uint4* p, uint4 v) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}
DEV uint4 take4(const uint4* p) {
  uint4 v;
#if BUG == 4
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
#else
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
#endif
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
DEV bool complete(uint4 v) {
  return v.x != NOTHING && v.y != NOTHING && v.z != NOTHING && v.w != NOTHING;
}
DEV unsigned safe(unsigned bits) { return BUG != 2 && bits == NOTHING ? 0 : bits; }
DEV uint4* slot(const Ranks& ranks, int owner, int call, int sender) {
  return ranks.slots[owner] + (call % BUFFERS * R + sender) * T + threadIdx.x;
}
__global__ void AllReduce(Ranks ranks, int rank, int call, const uint4* in, float4* out) {
  uint4 mine = in[threadIdx.x];
  mine = {safe(mine.x), safe(mine.y), safe(mine.z), safe(mine.w)};
  for (int r = 0; r < R; ++r) put4(slot(ranks, r, call, rank), mine);
  const uint4 empty = {NOTHING, NOTHING, NOTHING, NOTHING};
  for (int r = 0; r < R; ++r) {
    uint4* old = slot(ranks, rank, call + BUFFERS - 1, r);
#if BUG == 3
    *old = empty;
#else
    put4(old, empty);
#endif
  }
  float4 sum = {0, 0, 0, 0};
  for (int r = 0; r < R; ++r) {
    uint4 v;
    do v = take4(slot(ranks, rank, call, r));
    while (!complete(v));
    sum.x += __uint_as_float(v.x);
    sum.y += __uint_as_float(v.y);
    sum.z += __uint_as_float(v.z);
    sum.w += __uint_as_float(v.w);
  }
  out[call * T + threadIdx.x] = sum;
}
static float input(int rank, int i) { return i % 7 == 3 ? -0.f : static_cast<float>(rank + i); }
int main() {
  peers(R);
  Ranks ranks;
  float *in[R], *out[R];
  for (int r = 0; r < R; ++r) {
    float* slots = alloc<float>(r, BUFFERS * R * T * 4);
    put(r, slots, std::vector<float>(BUFFERS * R * T * 4, -0.f));
    ranks.slots[r] = (uint4*)slots;
    std::vector<float> values(T * 4);
    for (int i = 0; i < T * 4; ++i) values[i] = input(r, i);
    in[r] = alloc<float>(r, T * 4);
    put(r, in[r], values);
    out[r] = alloc<float>(r, CALLS * T * 4);
  }
  sync_all(R);
  for (int call = 0; call < CALLS; ++call)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      AllReduce<<<1, T>>>(ranks, r, call, (const uint4*)in[r], (float4*)out[r]);
    }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    const auto sums = get(r, out[r], CALLS * T * 4);
    for (int i = 0; i < CALLS * T * 4; ++i) {
      const int at = i % (T * 4);
      wrong += sums[i] != input(0, at) + input(1, at) + input(2, at);
    }
  }
  return finish(wrong, R);
}

// Lines of 128 bytes between two devices: fifteen lanes of a half-warp carry data, the sixteenth the line's flag,
// released after a warp barrier. Two sets of lines in turn.
// EXPECT 1 race: no warp barrier before the flag; the flag lane releases only its own accesses
// EXPECT 2 portability|value: LL128 as on NVLink: all words relaxed, the flag is assumed to come last
// EXPECT 3 warp_mask|hang: lanes of one half name the whole warp in the barrier while the other half has its own
// EXPECT 4 race: the flag is passed on by a shuffle, which orders no memory
// EXPECT 5 none: every lane polls and acquires the flag itself
#include "common.h"

constexpr int kRanks = 2, kWarps = 2, kEpochs = 4, kLines = 2 * kWarps;
using u64 = unsigned long long;

struct Node {
  u64* line[kRanks];  // [2][kLines][16]
  u64* out[kRanks];   // [kLines][16]
};

DEV void st_rel(u64* p, u64 v) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
DEV void st_rlx(u64* p, u64 v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
DEV u64 ld_acq(const u64* p) {
  u64 v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
DEV u64 ld_rlx(const u64* p) {
  u64 v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

DEV void send(u64* line, int word, u64 v, u64 flag, unsigned half) {
  if (BUG == 2) {
    st_rlx(line + word, word == 15 ? flag : v);
    return;
  }
  if (word < 15) line[word] = v;
  if (BUG == 3 && half == 0xffffu)
    __syncwarp();
  else if (BUG != 1)
    __syncwarp(half);
  if (word == 15) st_rel(line + 15, flag);
}

DEV u64 receive(const u64* line, int word, u64 flag, unsigned half) {
  if (BUG == 2) {
    u64 v;
    bool ready;
    do {
      v = ld_rlx(line + word);
      ready = __shfl_sync(half, v, 15, 16) == flag;
    } while (!ready);
    return v;
  }
  if (BUG == 4) {
    u64 f;
    do f = __shfl_sync(half, word == 15 ? ld_acq(line + 15) : 0, 15, 16);
    while (f != flag);
  } else {
    while ((BUG == 5 || word == 15) && ld_acq(line + 15) != flag) {
    }
    if (BUG != 5) __syncwarp(half);
  }
  return word < 15 ? line[word] : flag;
}

__global__ void exchange(Node node, int me) {
  const int j = threadIdx.x / 16, word = threadIdx.x % 16;
  const unsigned half = j % 2 ? 0xffff0000u : 0xffffu;
  u64 x = me * 1000 + threadIdx.x;
  for (int e = 1; e <= kEpochs; ++e) {
    const int at = (e % 2 * kLines + j) * 16;
    if (j % 2) {  // the halves of a warp go their own ways
      send(node.line[1 - me] + at, word, x, e, half);
      x += receive(node.line[me] + at, word, e, half);
    } else {
      send(node.line[1 - me] + at, word, x, e, half);
      x += 2 * receive(node.line[me] + at, word, e, half);
    }
  }
  node.out[me][threadIdx.x] = x;
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d) {
    node.line[d] = alloc<u64>(d, 2 * kLines * 16);
    node.out[d] = alloc<u64>(d, kLines * 16);
  }
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    exchange<<<1, kWarps * 32>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int i = 0; i < kLines * 16; ++i) {
    if (i % 16 == 15) continue;
    u64 x[2] = {u64(i), u64(1000 + i)};
    for (int e = 1; e <= kEpochs; ++e) {
      const u64 m = i / 16 % 2 ? 1 : 2, a = x[0];
      x[0] += m * x[1];
      x[1] += m * a;
    }
    for (int d = 0; d < kRanks; ++d) wrong += get(d, node.out[d] + i, 1)[0] != x[d];
  }
  return finish(wrong, kRanks);
}

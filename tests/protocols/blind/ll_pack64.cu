// LL exchange between two devices: each 64-bit word carries 32 bits of data and 32 bits of flag, so the word's own
// atomicity publishes the data. Two sets of slots; one fence per epoch orders reads before the peer's reuse.
// EXPECT 1 race: data by a weak store and flag by a relaxed store, as two words; nothing orders them
// EXPECT 2 portability|value: v2.u32 is two scalar accesses in unspecified order; the flag may be seen before the data
// EXPECT 3 race: the word is written by a weak store while the peer polls it
// EXPECT 4 scope: st.relaxed.gpu polled by another device
// EXPECT 5 race|portability: v2.u32 stores against u64 loads do not overlap completely, so they are not morally strong
// EXPECT 6 none: volatile accesses of 64 bits are relaxed accesses of system scope
#include "common.h"

constexpr int kRanks = 2, kBlocks = 2, kThreads = 32, kEpochs = 4;
constexpr int kN = kBlocks * kThreads;
using u64 = unsigned long long;

struct Node {
  u64* slot[kRanks];  // [2][kN]
  unsigned* out[kRanks];
};

DEV void send(u64* p, unsigned v, unsigned flag) {
  const u64 w = static_cast<u64>(flag) << 32 | v;
  unsigned* half = reinterpret_cast<unsigned*>(p);
  if (BUG == 1) {
    half[0] = v;
    st_relaxed(half + 1, flag);
  } else if (BUG == 2 || BUG == 5) {
    asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(v), "r"(flag)
                 : "memory");
  } else if (BUG == 3) {
    *p = w;
  } else if (BUG == 4) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(w) : "memory");
  } else if (BUG == 6) {
    *static_cast<volatile u64*>(p) = w;
  } else {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(w) : "memory");
  }
}

DEV unsigned receive(u64* p, unsigned flag) {
  unsigned v, f;
  do {
    if (BUG == 1) {
      f = ld_acquire(reinterpret_cast<unsigned*>(p) + 1);
      v = f == flag ? *reinterpret_cast<unsigned*>(p) : 0;
    } else if (BUG == 2) {
      asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];"
                   : "=r"(v), "=r"(f)
                   : "l"(p)
                   : "memory");
    } else {
      u64 w;
      if (BUG == 6)
        w = *static_cast<volatile u64*>(p);
      else
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(w) : "l"(p) : "memory");
      v = static_cast<unsigned>(w);
      f = w >> 32;
    }
  } while (f != flag);
  return v;
}

__global__ void exchange(Node node, int me) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  unsigned x = me * 1000 + i;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    send(node.slot[1 - me] + e % 2 * kN + i, x, e);
    x += receive(node.slot[me] + e % 2 * kN + i, e);
    // Release the read of this epoch with the next store, acquire what the peer released: makes reuse ordered.
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  }
  node.out[me][i] = x;
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d) {
    node.slot[d] = alloc<u64>(d, 2 * kN);
    node.out[d] = alloc<unsigned>(d, kN);
  }
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    exchange<<<kBlocks, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.out[d], kN);
    for (int i = 0; i < kN; ++i) wrong += out[i] != unsigned(1000 + 2 * i) * 8;
  }
  return finish(wrong, kRanks);
}

// 16-byte vector stores whose parts are read separately: each thread pushes {a, b, c, tag} to the other device as one
// vector store and publishes it by a flag word of its own; the receiver reads the parts one by one.
// EXPECT 1 portability|value: no flag; the tag is polled and the other parts of the relaxed vector taken for arrived
// EXPECT 2 race: no flag; a weak vector store whose tag the receiver polls
// EXPECT 3 none: the receiver reads the parts as two u64; they are ordered, so sizes do not matter
// EXPECT 4 race: no flag; relaxed vector, the tag is acquired, but nothing releases the parts that are read weakly
// EXPECT 5 none: no flag; every part carries its own tag in its high half and is polled by itself
#include "common.h"

constexpr int kThreads = 32, kEpochs = 4;
constexpr bool kFlag = BUG == 0 || BUG == 3;

struct Side {
  uint4* slot;     // [2][kThreads]
  unsigned* flag;  // [kThreads]
  unsigned* out;   // [kEpochs][kThreads]
};

DEV void send(uint4* p, uint4 v) {
  if (kFlag || BUG == 2)
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
  else
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x),
                 "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

DEV unsigned receive(const uint4* p, const unsigned* flag, unsigned e) {
  const unsigned* part = reinterpret_cast<const unsigned*>(p);
  unsigned sum = 0;
  if (BUG == 3) {
    wait_ge(flag, e);
    const unsigned long long* two = reinterpret_cast<const unsigned long long*>(p);
    return static_cast<unsigned>(two[0]) + static_cast<unsigned>(two[0] >> 32) +
           static_cast<unsigned>(two[1]);
  }
  if (BUG == 5) {
    for (int k = 0; k < 3; ++k) {
      unsigned v;
      while ((v = ld_relaxed(part + k)) >> 16 != e) {
      }
      sum += v & 0xffff;
    }
    return sum;
  }
  if (kFlag)
    wait_ge(flag, e);
  else
    while (ld_acquire(part + 3) != e) {
    }
  for (int k = 0; k < 3; ++k) sum += BUG == 1 ? ld_relaxed(part + k) : part[k];
  return sum;
}

__global__ void run(Side own, Side other, int me) {
  const int t = threadIdx.x;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    const unsigned tag = BUG == 5 ? e << 16 : 0, a = e * 100 + me * 50 + t;
    send(other.slot + e % 2 * kThreads + t, {tag | a, tag | (a + 1), tag | (a + 2), e});
    if (kFlag) st_release(&other.flag[t], e);
    own.out[(e - 1) * kThreads + t] = receive(own.slot + e % 2 * kThreads + t, &own.flag[t], e);
    asm volatile("fence.acq_rel.sys;" ::
                     : "memory");  // orders the reads of this epoch before the slot's reuse
  }
}

int main() {
  peers(2);
  Side side[2];
  for (int d = 0; d < 2; ++d)
    side[d] = {alloc<uint4>(d, 2 * kThreads), alloc<unsigned>(d, kThreads),
               alloc<unsigned>(d, kEpochs * kThreads)};
  sync_all(2);
  for (int d = 0; d < 2; ++d) {
    CK(cudaSetDevice(d));
    run<<<1, kThreads>>>(side[d], side[1 - d], d);
    CK(cudaGetLastError());
  }
  sync_all(2);
  long wrong = 0;
  for (int d = 0; d < 2; ++d) {
    const auto out = get(d, side[d].out, kEpochs * kThreads);
    for (int j = 0; j < kEpochs * kThreads; ++j)
      wrong += out[j] != 3 * unsigned((j / kThreads + 1) * 100 + (1 - d) * 50 + j % kThreads) + 3;
  }
  return finish(wrong, 2);
}

// A 64-bit progress word: epoch in the high half, finished rows in the low half. The consumer on another device takes
// rows as the word grows and returns the epoch when it has read them all.
// EXPECT 1 race|portability: the consumer polls the low half as u32; sizes differ, so not morally strong
// EXPECT 2 race: the halves are stored as two u32: mixed sizes, and a new epoch shows with the old count of rows
// EXPECT 3 race: the word is stored relaxed after the barrier, without a fence
// EXPECT 4 none: atom.exch.release in place of the store
// EXPECT 5 scope: ld.acquire.gpu, because the word lies in the consumer's memory
// EXPECT 6 race: a row counts as finished before the barrier that collects its words
#include "common.h"

constexpr int kThreads = 64, kRows = 4, kEpochs = 3;
using u64 = unsigned long long;

struct Node {
  unsigned* row;  // [kRows][kThreads] on device 1
  u64* progress;  // on device 1
  unsigned* taken;
  unsigned* out;  // [kEpochs][kThreads]
};

DEV void advance(u64* p, unsigned e, unsigned rows) {
  const u64 v = static_cast<u64>(e) << 32 | rows;
  [[maybe_unused]] u64 old;
  if (BUG == 2) {
    st_release(reinterpret_cast<unsigned*>(p) + 1, e);
    st_release(reinterpret_cast<unsigned*>(p), rows);
  } else if (BUG == 3) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
  } else if (BUG == 4) {
    asm volatile("atom.release.sys.global.exch.b64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(p), "l"(v)
                 : "memory");
  } else {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
  }
}

DEV void wait(u64* p, unsigned e, unsigned rows) {
  const u64 target = static_cast<u64>(e) << 32 | rows;
  u64 v;
  do {
    if (BUG == 1)  // rows count on through all epochs in this variant
      v = ld_acquire(reinterpret_cast<unsigned*>(p)) | target >> 32 << 32;
    else if (BUG == 5)
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    else
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  } while (v < target);
}

__global__ void run(Node n, bool producer) {
  const int t = threadIdx.x;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    const unsigned base = BUG == 1 ? (e - 1) * kRows : 0;
    unsigned sum = 0;
    if (producer && t == 0) wait_ge(n.taken, e - 1);
    __syncthreads();
    for (unsigned r = 1; r <= kRows; ++r) {
      unsigned* row = n.row + (r - 1) * kThreads;
      if (producer) {
        row[t] = e * 1000 + r * 100 + t;
        if (BUG != 6) __syncthreads();
        if (t == 0) advance(n.progress, e, base + r);
      } else {
        if (t == 0) wait(n.progress, e, base + r);
        __syncthreads();
        sum += row[t];
      }
    }
    __syncthreads();
    if (producer) continue;
    n.out[(e - 1) * kThreads + t] = sum;
    if (t == 0) st_release(n.taken, e);
  }
}

int main() {
  peers(2);
  const Node n = {alloc<unsigned>(1, kRows * kThreads), alloc<u64>(1, 1), alloc<unsigned>(0, 1),
                  alloc<unsigned>(1, kEpochs * kThreads)};
  sync_all(2);
  for (int d = 0; d < 2; ++d) {
    CK(cudaSetDevice(d));
    run<<<1, kThreads>>>(n, d == 0);
    CK(cudaGetLastError());
  }
  sync_all(2);
  long wrong = 0;
  const auto out = get(1, n.out, kEpochs * kThreads);
  for (int j = 0; j < kEpochs * kThreads; ++j)
    wrong += out[j] != unsigned(kRows * ((j / kThreads + 1) * 1000 + j % kThreads) + 1000);
  return finish(wrong, 2);
}

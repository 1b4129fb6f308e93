// Byte flags packed into one word: device p owns byte p of every device's word and stores the epoch there; a waiter
// acquires every byte by itself.
// EXPECT 1 race|portability: the waiter loads the four bytes as one u32; the accesses do not overlap completely
// EXPECT 2 race: the byte is stored weakly after a fence; a weak store is no part of a release pattern
// EXPECT 3 race|hang: the byte is set by a weak read-modify-write of the whole word, which others store to as well
// EXPECT 4 none: a fence, then a volatile store of the byte (relaxed, system scope)
// EXPECT 5 scope: the bytes in local memory are acquired at gpu scope
#include "common.h"

constexpr int kRanks = 4, kThreads = 32, kEpochs = 4;
using byte = unsigned char;

struct Node {
  unsigned* box[kRanks];   // [2][kRanks][kThreads]
  unsigned* word[kRanks];  // one byte per device
  unsigned* out[kRanks];   // [kEpochs][kThreads]
};

DEV void set(unsigned* word, int me, unsigned e) {
  byte* p = reinterpret_cast<byte*>(word) + me;
  if (BUG == 2) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    asm volatile("st.global.u8 [%0], %1;" ::"l"(p), "r"(e) : "memory");
  } else if (BUG == 3) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    *word = (*word & ~(0xffu << 8 * me)) | e << 8 * me;
  } else if (BUG == 4) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    *static_cast<volatile byte*>(p) = e;
  } else {
    asm volatile("st.release.sys.global.u8 [%0], %1;" ::"l"(p), "r"(e) : "memory");
  }
}

DEV void wait(const unsigned* word, int from, unsigned e) {
  const byte* p = reinterpret_cast<const byte*>(word) + from;
  unsigned v;
  do {
    if (BUG == 1)
      v = ld_acquire(word) >> 8 * from & 0xff;
    else if (BUG == 5)
      asm volatile("ld.acquire.gpu.global.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    else
      asm volatile("ld.acquire.sys.global.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  } while (v < e);
}

__global__ void run(Node node, int me) {
  const int t = threadIdx.x;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    for (int p = 0; p < kRanks; ++p)
      node.box[p][(e % 2 * kRanks + me) * kThreads + t] = e * 1000 + me * 100 + t;
    __syncthreads();
    if (t < kRanks) {
      set(node.word[t], me, e);
      wait(node.word[me], t, e);
    }
    __syncthreads();
    unsigned sum = 0;
    for (int p = 0; p < kRanks; ++p) sum += node.box[me][(e % 2 * kRanks + p) * kThreads + t];
    node.out[me][(e - 1) * kThreads + t] = sum;
  }
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d) {
    node.box[d] = alloc<unsigned>(d, 2 * kRanks * kThreads);
    node.word[d] = alloc<unsigned>(d, 1);
    node.out[d] = alloc<unsigned>(d, kEpochs * kThreads);
  }
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    run<<<1, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.out[d], kEpochs * kThreads);
    for (int j = 0; j < kEpochs * kThreads; ++j)
      wrong += out[j] != unsigned(kRanks * ((j / kThreads + 1) * 1000 + j % kThreads) + 600);
  }
  return finish(wrong, kRanks);
}

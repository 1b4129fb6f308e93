// Lamport all-reduce: values go into peers' buffers in place of a sentinel; arrival is seen by the value itself. Three
// buffers in turn; epoch e clears the buffer of epoch e - 1, which peers write again in epoch e + 2.
// EXPECT 1 race: weak clears and no fence; unordered with the peer's store two epochs later
// EXPECT 2 none: weak clears with the fence: the clear happens before the peer's store, and the poll is po-later
// EXPECT 3 hang|value: two buffers, cleared after sending; the peer's next value may be overwritten by the clear
// EXPECT 4 scope: values are stored at gpu scope, for polls of another device
// EXPECT 5 uninitialised|value|hang: only the first buffer is set to the sentinel
// EXPECT 6 none: the third buffer needs no initial sentinel; epoch 0 clears it before its peers can write it
#include "common.h"

constexpr int kRanks = 3, kBlocks = 2, kThreads = 32, kEpochs = 5;
constexpr int kN = kBlocks * kThreads, kBuffers = BUG == 3 ? 2 : 3;
constexpr unsigned kEmpty = 0xffffffffu;

struct Node {
  unsigned* buf[kRanks];  // [kBuffers][kRanks][kN]
  unsigned* out[kRanks];  // [kEpochs][kN]
};

__global__ void all_reduce(Node node, int me) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  for (int e = 0; e < kEpochs; ++e) {
    // Releases the clear of the last epoch with this epoch's values; acquires what the last values released.
    if (BUG != 1) asm volatile("fence.acq_rel.sys;" ::: "memory");
    const int now = e % kBuffers * kRanks * kN + i;
    for (int p = 0; p < kRanks; ++p) {
      unsigned* to = node.buf[p] + now + me * kN;
      if (BUG == 4)
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(e * 100 + me * 10 + i)
                     : "memory");
      else
        st_relaxed(to, e * 100 + me * 10 + i);
    }
    unsigned sum = 0;
    for (int p = 0; p < kRanks; ++p) {
      unsigned v;
      while ((v = ld_relaxed(node.buf[me] + now + p * kN)) == kEmpty) {
      }
      sum += v;
    }
    node.out[me][e * kN + i] = sum;
    unsigned* old = node.buf[me] + (e + kBuffers - 1) % kBuffers * kRanks * kN + i;
    for (int p = 0; p < kRanks; ++p) {
      if (BUG == 1 || BUG == 2)
        old[p * kN] = kEmpty;
      else
        st_relaxed(old + p * kN, kEmpty);
    }
  }
}

int main() {
  peers(kRanks);
  Node node;
  const int cleared = BUG == 5 ? 1 : BUG == 6 ? 2 : kBuffers;
  for (int d = 0; d < kRanks; ++d) {
    node.buf[d] = alloc<unsigned>(d, kBuffers * kRanks * kN, -1);
    CK(cudaMemset(node.buf[d], 0xff, cleared * kRanks * kN * sizeof(unsigned)));
    node.out[d] = alloc<unsigned>(d, kEpochs * kN);
  }
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    all_reduce<<<kBlocks, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.out[d], kEpochs * kN);
    for (int j = 0; j < kEpochs * kN; ++j)
      wrong += out[j] != unsigned(3 * (j / kN * 100 + j % kN) + 30);
  }
  return finish(wrong, kRanks);
}

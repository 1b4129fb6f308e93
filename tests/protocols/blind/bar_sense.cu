// Sense-reversing barrier of all blocks of three devices: the last to arrive sets the count back and flips the sense.
// EXPECT 1 hang|value: the count is set back after the sense is flipped; early arrivals of the next round get lost
// EXPECT 2 race: the arrival only releases; the last arriver never acquires the others before it flips the sense
// EXPECT 3 race: the sense is polled relaxed, without a fence
// EXPECT 4 scope: the sense is released at gpu scope, to other devices
// EXPECT 5 none: a weak store sets the count back; release and acquire of the sense order it with the next arrivals
#include "common.h"

constexpr int kRanks = 3, kBlocks = 2, kThreads = 32, kEpochs = 3, kN = kBlocks * kThreads;

struct Node {
  unsigned* data[kRanks];  // [kN]
  unsigned* out[kRanks];   // [kEpochs][kN]
  unsigned *count, *sense;
};

DEV void barrier(const Node& node, unsigned& sense) {
  sense ^= 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned n;
    if (BUG == 2)
      asm volatile("atom.release.sys.global.add.u32 %0, [%1], 1;"
                   : "=r"(n)
                   : "l"(node.count)
                   : "memory");
    else
      asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], 1;"
                   : "=r"(n)
                   : "l"(node.count)
                   : "memory");
    if (n == kRanks * kBlocks - 1) {
      if (BUG == 5)
        *node.count = 0;
      else if (BUG != 1)
        st_relaxed(node.count, 0);
      if (BUG == 4)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(node.sense), "r"(sense)
                     : "memory");
      else
        st_release(node.sense, sense);
      if (BUG == 1) st_relaxed(node.count, 0);
    } else if (BUG == 3) {
      while (ld_relaxed(node.sense) != sense) {
      }
    } else {
      while (ld_acquire(node.sense) != sense) {
      }
    }
  }
  __syncthreads();
}

__global__ void run(Node node, int me) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  unsigned sense = 0;
  for (int e = 0; e < kEpochs; ++e) {
    node.data[me][i] = e * 1000 + me * 100 + i;
    barrier(node, sense);
    node.out[me][e * kN + i] = node.data[(me + 1) % kRanks][kN - 1 - i];
    barrier(node, sense);
  }
}

int main() {
  peers(kRanks);
  Node node;
  node.count = alloc<unsigned>(0, 1);
  node.sense = alloc<unsigned>(0, 1);
  for (int d = 0; d < kRanks; ++d) {
    node.data[d] = alloc<unsigned>(d, kN);
    node.out[d] = alloc<unsigned>(d, kEpochs * kN);
  }
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    run<<<kBlocks, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, node.out[d], kEpochs * kN);
    for (int j = 0; j < kEpochs * kN; ++j)
      wrong += out[j] != unsigned(j / kN * 1000 + (d + 1) % kRanks * 100 + kN - 1 - j % kN);
  }
  return finish(wrong, kRanks);
}

// A flag matrix barrier per block: thread p of block b tells device p's block b and waits for its flag. A start barrier
// before block b reads what the blocks b of the peers wrote, an end barrier before it overwrites its own part.
// EXPECT 1 race: block b reads the part of block b + 1, which no flag of block b covers
// EXPECT 2 race: no block barrier before the flags; thread p releases only its own stores
// EXPECT 3 race: no end barrier; the next epoch overwrites what a peer still reads
// EXPECT 4 race: relaxed flags in the end barrier; the reads are not released before the peer's next stores
// EXPECT 5 none: flags of 0 and 1, reset by weak stores of their observer; the other barrier orders the next set
#include "common.h"

constexpr int kRanks = 4, kBlocks = 2, kThreads = 64, kEpochs = 4, kN = kBlocks * kThreads;

struct Node {
  unsigned* data[kRanks];  // [kN]
  unsigned* flag[kRanks];  // [2 barriers][kBlocks][kRanks]
  unsigned* out[kRanks];   // [kEpochs][kN]
};

DEV void barrier(const Node& node, int me, int which, unsigned e) {
  const int p = threadIdx.x, at = (which * kBlocks + blockIdx.x) * kRanks;
  if (BUG != 2) __syncthreads();
  if (p < kRanks) {
    unsigned* theirs = node.flag[p] + at + me;
    unsigned* ours = node.flag[me] + at + p;
    if (BUG == 4 && which == 1) {
      st_relaxed(theirs, e);
      while (ld_relaxed(ours) < e) {
      }
    } else if (BUG == 5) {
      st_release(theirs, 1);
      wait_ge(ours, 1);
      *ours = 0;
    } else {
      st_release(theirs, e);
      wait_ge(ours, e);
    }
  }
  __syncthreads();
}

__global__ void run(Node node, int me) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int from = BUG == 1 ? (i + kThreads) % kN : i;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    node.data[me][i] = e * 1000 + me * 100 + i % kThreads;
    barrier(node, me, 0, e);
    unsigned sum = 0;
    for (int p = 0; p < kRanks; ++p) sum += node.data[p][from];
    node.out[me][(e - 1) * kN + i] = sum;
    if (BUG != 3) barrier(node, me, 1, e);
  }
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d) {
    node.data[d] = alloc<unsigned>(d, kN);
    node.flag[d] = alloc<unsigned>(d, 2 * kBlocks * kRanks);
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
      wrong += out[j] != unsigned(kRanks * ((j / kN + 1) * 1000 + j % kThreads) + 600);
  }
  return finish(wrong, kRanks);
}

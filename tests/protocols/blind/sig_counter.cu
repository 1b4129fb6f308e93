// Put and count: two blocks on each of three producer devices put their pieces into the consumer's buffer and count
// them with a reduction; the consumer sums up and acknowledges the epoch to all producers.
// EXPECT 1 race: red.relaxed without a fence does not release the pieces
// EXPECT 2 scope: atomicAdd is of device scope, but producers are on several devices
// EXPECT 3 race: the consumer waits for one count per producer device, not one per block
// EXPECT 4 none: fence.acq_rel.sys, then a relaxed reduction
// EXPECT 5 race|hang: the consumer resets the counter weakly after the acknowledgement; new counts may be there
// EXPECT 6 none: the consumer resets the counter weakly before the acknowledgement, which orders it
#include "common.h"

constexpr int kRanks = 4, kBlocks = 2, kThreads = 32, kEpochs = 3;
constexpr int kPieces = (kRanks - 1) * kBlocks;

struct Node {
  unsigned* buf;          // [kPieces][kThreads] on device 0
  unsigned* count;        // on device 0
  unsigned* ack[kRanks];  // on every producer
  unsigned* out;          // [kEpochs][kThreads]
};

DEV void count_up(unsigned* p) {
  if (BUG == 4) asm volatile("fence.acq_rel.sys;" ::: "memory");
  if (BUG == 1 || BUG == 4)
    asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(p) : "memory");
  else if (BUG == 2) {
    __threadfence_system();
    atomicAdd(p, 1u);
  } else {
    red_release(p, 1);
  }
}

__global__ void produce(Node node, int me) {
  const int t = threadIdx.x, piece = (me - 1) * kBlocks + blockIdx.x;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    if (t == 0) wait_ge(node.ack[me], e - 1);
    __syncthreads();
    node.buf[piece * kThreads + t] = e * 1000 + piece * 10 + t;
    __syncthreads();
    if (t == 0) count_up(node.count);
  }
}

__global__ void consume(Node node) {
  const int t = threadIdx.x;
  for (unsigned e = 1; e <= kEpochs; ++e) {
    const unsigned per_epoch = BUG == 3 ? kRanks - 1 : kPieces;
    const unsigned before = BUG == 5 || BUG == 6 ? 0 : (e - 1) * kPieces;
    if (t == 0) wait_ge(node.count, before + per_epoch);
    __syncthreads();
    unsigned sum = 0;
    for (int p = 0; p < kPieces; ++p) sum += node.buf[p * kThreads + t];
    node.out[(e - 1) * kThreads + t] = sum;
    if (BUG == 6 && t == 0) *node.count = 0;
    __syncthreads();
    if (t > 0 && t < kRanks) st_release(node.ack[t], e);
    if (BUG == 5 && t == 0) *node.count = 0;
  }
}

int main() {
  peers(kRanks);
  Node node;
  node.buf = alloc<unsigned>(0, kPieces * kThreads);
  node.count = alloc<unsigned>(0, 1);
  node.out = alloc<unsigned>(0, kEpochs * kThreads);
  for (int d = 0; d < kRanks; ++d) node.ack[d] = alloc<unsigned>(d, 1);
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    if (d == 0)
      consume<<<1, kThreads>>>(node);
    else
      produce<<<kBlocks, kThreads>>>(node, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  const auto out = get(0, node.out, kEpochs * kThreads);
  for (int j = 0; j < kEpochs * kThreads; ++j)
    wrong += out[j] != unsigned(kPieces * ((j / kThreads + 1) * 1000 + j % kThreads) + 150);
  return finish(wrong, kRanks);
}

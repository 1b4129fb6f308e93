// Dissemination barrier of eight devices: in round k a device tells the device 2^k further and waits for the one 2^k
// before. Flags hold the barrier's number. Between barriers everybody reads everybody's word.
// EXPECT 1 race: the second round stores relaxed; what was learnt in the first round is not passed on
// EXPECT 2 scope: the first round releases at gpu scope
// EXPECT 3 race: the last round is missing; half of the devices were never heard of
// EXPECT 4 none: relaxed poll, then fence.acq_rel, then the next round's release
// EXPECT 5 hang|value: flags of 0 and 1 reset by the waiter, without parity: the next barrier's signal can be lost
#include "common.h"

constexpr int kRanks = 8, kRounds = BUG == 3 ? 2 : 3, kThreads = 32, kEpochs = 3;

struct Node {
  unsigned* data[kRanks];  // [kThreads]
  unsigned* flag[kRanks];  // [3]
  unsigned* out[kRanks];   // [kEpochs][kThreads]
};

DEV void signal(unsigned* flag, unsigned v, int round) {
  if (BUG == 1 && round == 1)
    st_relaxed(flag, v);
  else if (BUG == 2 && round == 0)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
  else
    st_release(flag, v);
}

DEV void wait(unsigned* flag, unsigned v) {
  if (BUG == 4) {
    while (ld_relaxed(flag) < v) {
    }
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  } else {
    wait_ge(flag, v);
  }
  if (BUG == 5) st_relaxed(flag, 0);
}

DEV void barrier(const Node& node, int me, unsigned number) {
  __syncthreads();
  if (threadIdx.x == 0)
    for (int k = 0; k < kRounds; ++k) {
      signal(&node.flag[(me + (1 << k)) % kRanks][k], BUG == 5 ? 1 : number, k);
      wait(&node.flag[me][k], BUG == 5 ? 1 : number);
    }
  __syncthreads();
}

__global__ void run(Node node, int me) {
  const int t = threadIdx.x;
  unsigned number = 0;
  for (int e = 0; e < kEpochs; ++e) {
    node.data[me][t] = e * 1000 + me * 100 + t;
    barrier(node, me, ++number);
    unsigned sum = 0;
    for (int p = 0; p < kRanks; ++p) sum += node.data[(me + p) % kRanks][t];
    node.out[me][e * kThreads + t] = sum;
    barrier(node, me, ++number);
  }
}

int main() {
  peers(kRanks);
  Node node;
  for (int d = 0; d < kRanks; ++d) {
    node.data[d] = alloc<unsigned>(d, kThreads);
    node.flag[d] = alloc<unsigned>(d, 3);
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
      wrong += out[j] != unsigned(kRanks * (j / kThreads * 1000 + j % kThreads) + 2800);
  }
  return finish(wrong, kRanks);
}

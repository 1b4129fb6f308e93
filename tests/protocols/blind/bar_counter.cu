// A barrier of all blocks of all devices on one counter in device 0, counted up for ever. Between barriers every block
// reads what the same block of the next device wrote.
// EXPECT 1 scope: atomicAdd is of device scope, but several devices count
// EXPECT 2 race: atomicAdd_system is relaxed and there is no fence
// EXPECT 3 race: no block barrier after the poll; the other warp does not wait
// EXPECT 4 none: relaxed atomics and polls between fences of system scope
// EXPECT 5 race: only one barrier per epoch; the next write overtakes the neighbour's read
// EXPECT 6 uninitialised|hang|race: the counter is not set to zero
#include "common.h"

constexpr int kRanks = 4, kBlocks = 2, kThreads = 64, kEpochs = 3, kN = kBlocks * kThreads;

struct Node {
  unsigned* data[kRanks];  // [kN]
  unsigned* out[kRanks];   // [kEpochs][kN]
  unsigned* counter;
};

DEV void barrier(unsigned* counter, unsigned round) {
  const unsigned target = round * kRanks * kBlocks;
  __syncthreads();
  if (threadIdx.x == 0) {
    if (BUG == 1) {
      __threadfence_system();
      atomicAdd(counter, 1u);
      wait_ge(counter, target);
    } else if (BUG == 2) {
      atomicAdd_system(counter, 1u);
      wait_ge(counter, target);
    } else if (BUG == 4) {
      __threadfence_system();
      atomicAdd_system(counter, 1u);
      while (ld_relaxed(counter) < target) {
      }
      __threadfence_system();
    } else {
      red_release(counter, 1);
      wait_ge(counter, target);
    }
  }
  if (BUG != 3) __syncthreads();
}

__global__ void run(Node node, int me) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  unsigned round = 0;
  for (int e = 0; e < kEpochs; ++e) {
    node.data[me][i] = e * 1000 + me * 100 + i;
    barrier(node.counter, ++round);
    node.out[me][e * kN + i] = node.data[(me + 1) % kRanks][i];
    if (BUG != 5) barrier(node.counter, ++round);
  }
}

int main() {
  peers(kRanks);
  Node node;
  node.counter = alloc<unsigned>(0, 1, BUG == 6 ? -1 : 0);
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
      wrong += out[j] != unsigned(j / kN * 1000 + (d + 1) % kRanks * 100 + j % kN);
  }
  return finish(wrong, kRanks);
}

// A token goes round three devices; its holder updates a record in device 0's memory with ordinary accesses.
// EXPECT 1 race: the token is passed on by relaxed stores
// EXPECT 2 scope: the token is an atomic of device scope
// EXPECT 3 race: device 1 passes on by a relaxed fetch_add; its own update is not released
// EXPECT 4 none: device 1 touches nothing and passes on by a relaxed fetch_add; observation order runs through it
// EXPECT 5 race: device 1 touches nothing but passes on by a relaxed store, which breaks the chain from device 0
#include <cuda/atomic>
#include "common.h"

constexpr int kRanks = 3, kThreads = 32, kRounds = 4;

__global__ void run(unsigned* record, unsigned* word, int me) {
  constexpr auto kScope = BUG == 2 ? cuda::thread_scope_device : cuda::thread_scope_system;
  const int t = threadIdx.x;
  for (unsigned turn = me; turn < kRounds * kRanks; turn += kRanks) {
    cuda::atomic_ref<unsigned, kScope> token(*word);
    if (t == 0)
      while (token.load(cuda::memory_order_acquire) != turn) {
      }
    __syncthreads();
    if (me != 1 || (BUG != 4 && BUG != 5)) record[t] = record[t] * 2 + me;
    __syncthreads();
    if (t > 0) continue;
    if ((BUG == 3 || BUG == 4) && me == 1)
      token.fetch_add(1, cuda::memory_order_relaxed);
    else if (BUG == 1 || (BUG == 5 && me == 1))
      token.store(turn + 1, cuda::memory_order_relaxed);
    else
      token.store(turn + 1, cuda::memory_order_release);
  }
}

int main() {
  peers(kRanks);
  unsigned* record = alloc<unsigned>(0, kThreads);
  unsigned* word = alloc<unsigned>(0, 1);
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    run<<<1, kThreads>>>(record, word, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  unsigned want = 0;
  for (int turn = 0; turn < kRounds * kRanks; ++turn)
    if (turn % kRanks != 1 || (BUG != 4 && BUG != 5)) want = want * 2 + turn % kRanks;
  long wrong = 0;
  for (unsigned v : get(0, record, kThreads)) wrong += v != want;
  return finish(wrong, kRanks);
}

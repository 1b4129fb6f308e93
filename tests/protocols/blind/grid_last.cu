// The last block of each device's grid to count itself adds the partial sums of all blocks, sends
// the total to the peer and waits for the peer's; it also resets the counter for the next launch.
// EXPECT 1 race: no fence before the atomic, the partial sums are not released
// EXPECT 2 race: no fence after the atomic, the last block's reads of partial sums are not acquired
// EXPECT 3 scope|race: blocks count themselves by an atomic of block scope
// EXPECT 4 race: no block barrier before thread 0's fence, which does not cover other threads
// EXPECT 5 race: every thread fences before the barrier, thread 0's atomic after it releases nothing
// EXPECT 6 none: the counter is reset by an atomic exchange instead of an ordinary store
#include "common.h"

constexpr int kThreads = 64, kBlocks = 4, kN = kThreads * kBlocks, kEpochs = 3, kDev = 2;

__global__ void work(const unsigned* src, unsigned* partial, unsigned* count, const unsigned* mine,
                     unsigned* theirs, const unsigned* flag_mine, unsigned* flag_theirs,
                     unsigned epoch, unsigned* out) {
  __shared__ unsigned last;
  const unsigned t = threadIdx.x, i = blockIdx.x * kThreads + t;
  partial[i] = src[i] * (epoch + 1);
  if (BUG == 5) __threadfence();
  if (BUG != 4) __syncthreads();
  if (t == 0) {
    if (BUG != 1 && BUG != 5) __threadfence();
    last = (BUG == 3 ? atomicAdd_block(count, 1) : atomicAdd(count, 1)) == kBlocks - 1;
    if (BUG != 2) __threadfence();
  }
  __syncthreads();
  if (!last) return;
  unsigned sum = 0;
  for (unsigned b = 0; b < kBlocks; ++b) sum += partial[b * kThreads + (t + b) % kThreads];
  theirs[epoch * kThreads + t] = sum;
  __syncthreads();
  if (t == 0) {
    if (BUG == 6)
      atomicExch(count, 0);
    else
      *count = 0;
    st_release(flag_theirs, epoch + 1);
    wait_ge(flag_mine, epoch + 1);
  }
  __syncthreads();
  out[epoch * kThreads + t] = sum + mine[epoch * kThreads + t];
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *partial[kDev], *count[kDev], *inbox[kDev], *flag[kDev], *out[kDev];
  std::vector<unsigned> v(kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, kN);
    partial[d] = alloc<unsigned>(d, kN);
    count[d] = alloc<unsigned>(d, 1);
    inbox[d] = alloc<unsigned>(d, kEpochs * kThreads);
    flag[d] = alloc<unsigned>(d, 1);
    out[d] = alloc<unsigned>(d, kEpochs * kThreads);
    for (int i = 0; i < kN; ++i) v[i] = 500 * d + i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (unsigned e = 0; e < kEpochs; ++e) {
    for (int d = 0; d < kDev; ++d) {
      CK(cudaSetDevice(d));
      work<<<kBlocks, kThreads>>>(src[d], partial[d], count[d], inbox[d], inbox[1 - d], flag[d],
                                  flag[1 - d], e, out[d]);
    }
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kEpochs * kThreads);
    for (int i = 0; i < kEpochs * kThreads; ++i) {
      unsigned want = kBlocks * 500;
      for (int b = 0; b < kBlocks; ++b) want += 2 * (b * kThreads + (i % kThreads + b) % kThreads);
      wrong += r[i] != want * (i / kThreads + 1);
    }
  }
  return finish(wrong, kDev);
}

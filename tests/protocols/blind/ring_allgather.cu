// Ring all-gather: every step pushes a chunk into the next rank's buffer and counts the step there; epochs alternate
// between two buffers and the reader of a buffer gives credit back.
// EXPECT 1 race: the step counter is stored relaxed after the barrier; no release pattern, the chunk is not published
// EXPECT 2 scope: st.release.gpu cannot release to a thread of another device
// EXPECT 3 none: with two buffers the ring itself orders the reads of epoch e-2 before the writes of epoch e
// EXPECT 4 race: one buffer and no credit; the last chunks of an epoch are overwritten while they are read
// EXPECT 5 race: only thread 0 waits; no barrier orders the other threads after its acquire
#include "common.h"

constexpr int kRanks = 4, kBlocks = 2, kThreads = 32, kEpochs = 4;
constexpr int kChunk = kBlocks * kThreads;
constexpr int kBuffers = BUG == 4 ? 1 : 2;

struct Rank {
  unsigned* buf;      // [kBuffers][kRanks][kChunk], filled by the previous rank
  unsigned* arrived;  // [kBlocks] steps that the previous rank has delivered
  unsigned* credit;   // [kBlocks] epochs that the next rank has consumed
  unsigned* sum;      // [kEpochs][kChunk]
};
struct Ring {
  Rank r[kRanks];
};

DEV void publish(unsigned* flag, unsigned v) {
  if (BUG == 1)
    st_relaxed(flag, v);
  else if (BUG == 2)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
  else
    st_release(flag, v);
}

__global__ void all_gather(Ring ring, int me) {
  const Rank own = ring.r[me], next = ring.r[(me + 1) % kRanks],
             prev = ring.r[(me + kRanks - 1) % kRanks];
  const int b = blockIdx.x, i = b * kThreads + threadIdx.x;
  const bool leader = threadIdx.x == 0;
  unsigned step = 0;
  for (int e = 0; e < kEpochs; ++e) {
    if (BUG != 3 && BUG != 4 && e >= 2) {
      if (leader) wait_ge(&own.credit[b], e - 1);
      __syncthreads();
    }
    unsigned* in = own.buf + e % kBuffers * kRanks * kChunk;
    unsigned* out = next.buf + e % kBuffers * kRanks * kChunk;
    unsigned v = e * 1000 + me * 100 + i;
    unsigned total = v;
    for (int s = 0; s + 1 < kRanks; ++s) {
      out[(me + kRanks - s) % kRanks * kChunk + i] = v;
      ++step;
      __syncthreads();
      if (leader) {
        publish(&next.arrived[b], step);
        wait_ge(&own.arrived[b], step);
      }
      if (BUG != 5) __syncthreads();
      v = in[(me + kRanks - s - 1) % kRanks * kChunk + i];
      total += v;
    }
    own.sum[e * kChunk + i] = total;
    __syncthreads();
    if (leader) st_release(&prev.credit[b], e + 1);
  }
}

int main() {
  peers(kRanks);
  Ring ring;
  for (int d = 0; d < kRanks; ++d)
    ring.r[d] = {alloc<unsigned>(d, kBuffers * kRanks * kChunk), alloc<unsigned>(d, kBlocks),
                 alloc<unsigned>(d, kBlocks), alloc<unsigned>(d, kEpochs * kChunk)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    all_gather<<<kBlocks, kThreads>>>(ring, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto sum = get(d, ring.r[d].sum, kEpochs * kChunk);
    for (int e = 0; e < kEpochs; ++e)
      for (int i = 0; i < kChunk; ++i)
        wrong += sum[e * kChunk + i] != unsigned(kRanks * (e * 1000 + i) + 600);
  }
  return finish(wrong, kRanks);
}

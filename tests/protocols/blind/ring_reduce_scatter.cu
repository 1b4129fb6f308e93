// Ring reduce-scatter through two staging slots per rank: a rank writes step k into the next rank's slot k % 2 once the
// next rank has given credit for step k - 2.
// EXPECT 1 race: credit is given without a barrier; other threads of the block may still read the slot
// EXPECT 2 race: credit is checked for step k - 3; the slot is overwritten while it is read
// EXPECT 3 race: credit is a relaxed store without a fence; the reads of the slot are not released before it
// EXPECT 4 none: fence.acq_rel.sys and a relaxed store by one thread after the barrier are a release pattern
// EXPECT 5 hang: everyone waits for the credit of step k before sending step k
#include "common.h"

constexpr int kRanks = 4, kBlocks = 2, kThreads = 64, kEpochs = 3;
constexpr int kChunk = kBlocks * kThreads;

struct Rank {
  unsigned* slot;     // [2][kChunk], filled by the previous rank
  unsigned* arrived;  // [kBlocks]
  unsigned* credit;   // [kBlocks]
  unsigned* out;      // [kEpochs][kChunk]
};
struct Ring {
  Rank r[kRanks];
};

static __host__ __device__ unsigned input(int rank, int chunk, int e, int i) {
  return rank * 7 + chunk * 1000 + e * 100 + i;
}

__global__ void reduce_scatter(Ring ring, int me) {
  const Rank own = ring.r[me], next = ring.r[(me + 1) % kRanks],
             prev = ring.r[(me + kRanks - 1) % kRanks];
  const int b = blockIdx.x, i = b * kThreads + threadIdx.x;
  const bool leader = threadIdx.x == 0;
  const unsigned lag = BUG == 5 ? 0 : BUG == 2 ? 3 : 2;
  unsigned k = 0;
  for (int e = 0; e < kEpochs; ++e) {
    unsigned acc = input(me, (me + kRanks - 1) % kRanks, e, i);
    for (int s = 0; s + 1 < kRanks; ++s) {
      ++k;
      if (leader && k > lag) wait_ge(&own.credit[b], k - lag);
      __syncthreads();
      next.slot[k % 2 * kChunk + i] = acc;
      __syncthreads();
      if (leader) {
        st_release(&next.arrived[b], k);
        wait_ge(&own.arrived[b], k);
      }
      __syncthreads();
      acc = own.slot[k % 2 * kChunk + i] + input(me, (me + 2 * kRanks - s - 2) % kRanks, e, i);
      if (BUG != 1) __syncthreads();
      if (leader) {
        if (BUG == 4) asm volatile("fence.acq_rel.sys;" ::: "memory");
        if (BUG == 3 || BUG == 4)
          st_relaxed(&prev.credit[b], k);
        else
          st_release(&prev.credit[b], k);
      }
    }
    own.out[e * kChunk + i] = acc;
  }
}

int main() {
  peers(kRanks);
  Ring ring;
  for (int d = 0; d < kRanks; ++d)
    ring.r[d] = {alloc<unsigned>(d, 2 * kChunk), alloc<unsigned>(d, kBlocks),
                 alloc<unsigned>(d, kBlocks), alloc<unsigned>(d, kEpochs * kChunk)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    reduce_scatter<<<kBlocks, kThreads>>>(ring, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, ring.r[d].out, kEpochs * kChunk);
    for (int e = 0; e < kEpochs; ++e)
      for (int i = 0; i < kChunk; ++i) {
        unsigned want = 0;
        for (int r = 0; r < kRanks; ++r) want += input(r, d, e, i);
        wrong += out[e * kChunk + i] != want;
      }
  }
  return finish(wrong, kRanks);
}

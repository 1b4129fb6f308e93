// Ring all-reduce (reduce-scatter, then all-gather) with chunks written by several blocks: the block that draws the
// last ticket of a step publishes the whole chunk to the next rank. Epochs alternate between two sets of slots.
// EXPECT 0 race: a block that is a step ahead draws both tickets of a step, and the other block's part is not there
// EXPECT 1 race: the ticket is relaxed; the other block's part does not happen before the flag
// EXPECT 2 scope: the ticket is acq_rel of cta scope, but blocks draw it
// EXPECT 3 race: as 0, with device fences before and after a relaxed ticket
// EXPECT 4 race: the ticket only releases; the last block never acquires the other block's part
// EXPECT 5 race|hang: the ticket is reset by a weak store after publishing, unordered with the next step's tickets
#include "common.h"

constexpr int kRanks = 3, kBlocks = 2, kThreads = 32, kEpochs = 4, kSteps = 2 * (kRanks - 1);
constexpr int kChunk = kBlocks * kThreads;

struct Rank {
  unsigned* slot;     // [2][kSteps][kChunk], filled by the previous rank
  unsigned* arrived;  // steps that the previous rank has delivered
  unsigned* ticket;
  unsigned* out;  // [kEpochs][kRanks][kChunk]
};
struct Ring {
  Rank r[kRanks];
};

static __host__ __device__ unsigned input(int rank, int chunk, int e, int x) {
  return rank * 7 + chunk * 1000 + e * 100 + x;
}

DEV bool last_block(unsigned* ticket) {
  unsigned t;
  if (BUG == 1) {
    t = atomicAdd(ticket, 1u);
  } else if (BUG == 2) {
    asm volatile("atom.acq_rel.cta.global.add.u32 %0, [%1], 1;" : "=r"(t) : "l"(ticket) : "memory");
  } else if (BUG == 3) {
    __threadfence();
    t = atomicAdd(ticket, 1u);
    __threadfence();
  } else if (BUG == 4) {
    asm volatile("atom.release.gpu.global.add.u32 %0, [%1], 1;" : "=r"(t) : "l"(ticket) : "memory");
  } else {
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(t) : "l"(ticket) : "memory");
  }
  return t % kBlocks == kBlocks - 1;
}

__global__ void all_reduce(Ring ring, int me) {
  const Rank own = ring.r[me], next = ring.r[(me + 1) % kRanks];
  int x = blockIdx.x * kThreads +
          threadIdx.x;  // the element in hand: turned around at each step, across blocks
  unsigned k = 0;
  for (int e = 0; e < kEpochs; ++e) {
    int chunk = (me + kRanks - 1) % kRanks;
    unsigned v = input(me, chunk, e, x);
    for (int s = 0; s < kSteps; ++s) {
      const int slot = (e % 2 * kSteps + s) * kChunk;
      next.slot[slot + x] = v;
      ++k;
      __syncthreads();
      if (threadIdx.x == 0) {
        if (last_block(own.ticket)) {
          st_release(next.arrived, k);
          if (BUG == 5) *own.ticket = 0;
        }
        wait_ge(own.arrived, k);
      }
      __syncthreads();
      x = kChunk - 1 - x;
      chunk = (chunk + kRanks - 1) % kRanks;
      v = own.slot[slot + x];
      if (s < kRanks - 1) v += input(me, chunk, e, x);
      if (s >= kRanks - 2) own.out[(e * kRanks + chunk) * kChunk + x] = v;
    }
  }
}

int main() {
  peers(kRanks);
  Ring ring;
  for (int d = 0; d < kRanks; ++d)
    ring.r[d] = {alloc<unsigned>(d, 2 * kSteps * kChunk), alloc<unsigned>(d, 1),
                 alloc<unsigned>(d, 1), alloc<unsigned>(d, kEpochs * kRanks * kChunk)};
  sync_all(kRanks);
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    all_reduce<<<kBlocks, kThreads>>>(ring, d);
    CK(cudaGetLastError());
  }
  sync_all(kRanks);
  long wrong = 0;
  for (int d = 0; d < kRanks; ++d) {
    const auto out = get(d, ring.r[d].out, kEpochs * kRanks * kChunk);
    for (int j = 0; j < kEpochs * kRanks * kChunk; ++j) {
      unsigned want = 0;
      for (int r = 0; r < kRanks; ++r)
        want += input(r, j / kChunk % kRanks, j / kChunk / kRanks, j % kChunk);
      wrong += out[j] != want;
    }
  }
  return finish(wrong, kRanks);
}

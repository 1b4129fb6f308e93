// Each warp rotates words of the peer device among its lanes through shared memory, several times;
// __syncwarp separates the stores from the reads of other lanes and those from the next stores.
// EXPECT 1 race: no __syncwarp between the stores and the reads of other lanes
// EXPECT 2 race: no __syncwarp between the reads and the next stores
// EXPECT 3 warp_mask|race: __syncwarp(0xffff) is also executed by the lanes outside of its mask
// EXPECT 4 race: a __shfl_sync instead of __syncwarp; shuffles and votes do not order memory
// EXPECT 5 race: each half of the warp synchronises by itself, but lanes read across the halves
// EXPECT 6 none: each half of the warp synchronises by itself and rotates within itself
#include "common.h"

constexpr int kThreads = 64, kBlocks = 2, kSteps = 4, kDev = 2;
constexpr int kWidth = BUG == 6 ? 16 : 32, kTotal = kThreads * kBlocks;

DEV void fence_lanes(unsigned lane) {
  if (BUG == 3) {
    __syncwarp(0xffff);
  } else if (BUG == 5 || BUG == 6) {
    if (lane < 16)
      __syncwarp(0x0000ffff);
    else
      __syncwarp(0xffff0000);
  } else {
    __syncwarp();
  }
}

__global__ void work(const unsigned* src, unsigned* out) {
  __shared__ unsigned box[kThreads / 32][32];
  const unsigned t = threadIdx.x, lane = t % 32, i = blockIdx.x * kThreads + t;
  unsigned* mine = box[t / 32];
  unsigned v = src[i];
  for (int step = 0; step < kSteps; ++step) {
    mine[lane] = v;
    if (BUG == 4)
      v += __shfl_sync(~0u, 0, 0);
    else if (BUG != 1)
      fence_lanes(lane);
    v = 2 * v + mine[lane / kWidth * kWidth + (lane + 1 + step) % kWidth];
    if (BUG != 2) fence_lanes(lane);
  }
  out[i] = v;
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(kTotal);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, kTotal);
    out[d] = alloc<unsigned>(d, kTotal);
    for (int i = 0; i < kTotal; ++i) v[i] = 1000 * d + i * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<kBlocks, kThreads>>>(src[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    std::vector<unsigned> want = get(1 - d, src[1 - d], kTotal);
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<unsigned> old = want;
      for (int i = 0; i < kTotal; ++i)
        want[i] = 2 * old[i] + old[i / kWidth * kWidth + (i + 1 + step) % kWidth];
    }
    const auto r = get(d, out[d], kTotal);
    for (int i = 0; i < kTotal; ++i) wrong += r[i] != want[i];
  }
  return finish(wrong, kDev);
}

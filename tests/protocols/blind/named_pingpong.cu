// Two warps produce tiles from the peer device into one buffer, two other warps consume them. Named
// barrier 1 means full (producers arrive, consumers sync), barrier 2 empty, both of 128 threads.
// EXPECT 1 race|barrier|hang: no empty barrier, producers overwrite and arrive twice on full
// EXPECT 2 race: the consumers arrive on empty before they have read the tile
// EXPECT 3 race|barrier: both barriers count 64, so that each side completes them by itself
// EXPECT 4 hang|barrier: a __syncthreads in the producers' branch only
// EXPECT 5 race|barrier|hang: one barrier is used for full and empty both
// EXPECT 6 none: the producers sync on full instead of arriving, which waits longer than needed
#include "common.h"

constexpr int kN = 64, kTiles = 5, kDev = 2;
constexpr int kFull = 1, kEmpty = BUG == 5 ? 1 : 2, kCount = BUG == 3 ? 64 : 128;

DEV void sync(int id) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(kCount) : "memory"); }
DEV void arrive(int id) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(kCount) : "memory"); }

__global__ void work(const unsigned* src, unsigned* out) {
  __shared__ unsigned tile[kN];
  const unsigned t = threadIdx.x % kN;
  if (threadIdx.x < kN) {
    for (int i = 0; i < kTiles; ++i) {
      if (i > 0 && BUG != 1) sync(kEmpty);
      tile[t] = src[i * kN + t];
      if (BUG == 4) __syncthreads();
      if (BUG == 6)
        sync(kFull);
      else
        arrive(kFull);
    }
  } else {
    for (int i = 0; i < kTiles; ++i) {
      const bool last = i == kTiles - 1;
      sync(kFull);
      if (BUG == 2 && !last) arrive(kEmpty);
      out[i * kN + t] = tile[t] + tile[(t + 33) % kN];
      if (BUG != 1 && BUG != 2 && !last) arrive(kEmpty);
    }
  }
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(kTiles * kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, v.size());
    out[d] = alloc<unsigned>(d, v.size());
    for (size_t i = 0; i < v.size(); ++i) v[i] = 1000 * d + 3 * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, 2 * kN>>>(src[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], v.size());
    for (int i = 0; i < kTiles * kN; ++i) {
      const int j = i / kN * kN + (i % kN + 33) % kN;
      wrong += r[i] != static_cast<unsigned>(2000 * (1 - d) + 3 * (i + j));
    }
  }
  return finish(wrong, kDev);
}

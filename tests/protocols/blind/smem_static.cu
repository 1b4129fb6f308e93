// Static shared arrays: a tile of the peer device with one halo word, and the sums of neighbours,
// which are then read in reverse; both are used again for the next tile.
// EXPECT 1 out_of_bounds|race: the tile has no room for the halo, which hits another array
// EXPECT 2 race: no barrier between the stores to the tile and the neighbours' reads
// EXPECT 3 race: no barrier between the sums and their reads in reverse
// EXPECT 4 none: no barrier at the end of the loop, the other two order reads and next stores
// EXPECT 5 uninitialised: the halo word is never written, its weight happens to be 0
// EXPECT 6 race: __syncwarp between the stores to the tile and reads, some of another warp's words
#include "common.h"

constexpr int kN = 64, kEpochs = 4, kDev = 2;

__global__ void work(const unsigned* src, unsigned* out, unsigned halo_weight) {
  __shared__ unsigned a[BUG == 1 ? kN : kN + 1];
  __shared__ unsigned s[kN];
  const unsigned t = threadIdx.x;
  for (int e = 0; e < kEpochs; ++e) {
    a[t] = src[e * kN + t];
    if (t == 0 && BUG != 5) a[kN] = src[e * kN];
    if (BUG == 6)
      __syncwarp();
    else if (BUG != 2)
      __syncthreads();
    s[t] = a[t] + a[t + 1] * (t == kN - 1 ? halo_weight : 1);
    if (BUG != 3) __syncthreads();
    out[e * kN + t] = s[kN - 1 - t];
    if (BUG != 4) __syncthreads();
  }
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(kEpochs * kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, v.size());
    out[d] = alloc<unsigned>(d, v.size());
    for (size_t i = 0; i < v.size(); ++i) v[i] = 1000 * d + 3 * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, kN>>>(src[1 - d], out[d], 0);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto s = get(1 - d, src[1 - d], v.size()), r = get(d, out[d], v.size());
    for (int i = 0; i < kEpochs * kN; ++i) {
      const int base = i / kN * kN, j = kN - 1 - i % kN;
      wrong += r[i] != s[base + j] + (j == kN - 1 ? 0 : s[base + j + 1]);
    }
  }
  return finish(wrong, kDev);
}

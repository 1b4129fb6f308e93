// Dynamic shared memory is carved into kN + 1 words (a tile of the peer device with a halo) and kN
// words of 8 bytes (sums); later the place of the tile is used again for the words to send.
// EXPECT 1 out_of_bounds: the launch passes the size of the sums only
// EXPECT 2 race: the halo was forgotten in the offset, the halo word and the first sum overlap
// EXPECT 3 misaligned: the offset of the 8-byte words is not rounded up to a multiple of 8
// EXPECT 4 race: the place of the tile is used again while other threads may still read it
// EXPECT 5 uninitialised: the halo word is never written, its weight happens to be 0
// EXPECT 6 none: the sums are read in place, so that one barrier less is needed
#include "common.h"

constexpr int kN = 64, kEpochs = 3, kDev = 2;
using Wide = unsigned long long;
constexpr int kTileBytes = 4 * (kN + 1);
constexpr int kOffset = BUG == 2 ? 4 * kN : BUG == 3 ? kTileBytes : (kTileBytes + 7) / 8 * 8;
constexpr int kBytes = (BUG == 1 ? 0 : (kTileBytes + 7) / 8 * 8) + 8 * kN;

__global__ void work(const unsigned* src, unsigned* out, unsigned halo_weight) {
  extern __shared__ __align__(16) unsigned char raw[];
  unsigned* tile = reinterpret_cast<unsigned*>(raw);
  Wide* sums = reinterpret_cast<Wide*>(raw + kOffset);
  const unsigned t = threadIdx.x;
  for (int e = 0; e < kEpochs; ++e) {
    tile[t] = src[e * kN + t];
    if (t == 0 && BUG != 5) tile[kN] = src[e * kN];
    __syncthreads();
    sums[t] = static_cast<Wide>(tile[t]) + tile[t + 1] * (t == kN - 1 ? halo_weight : 1);
    if (BUG != 4 && BUG != 6) __syncthreads();
    if (BUG == 4) __syncwarp();
    unsigned* send = tile;
    if (BUG != 6) send[t] = static_cast<unsigned>(sums[t ^ 1]);
    __syncthreads();
    out[e * kN + t] = BUG == 6 ? static_cast<unsigned>(sums[(kN - 1 - t) ^ 1]) : send[kN - 1 - t];
    __syncthreads();
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
    work<<<1, kN, kBytes>>>(src[1 - d], out[d], 0);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto s = get(1 - d, src[1 - d], v.size()), r = get(d, out[d], v.size());
    for (int i = 0; i < kEpochs * kN; ++i) {
      const int base = i / kN * kN, u = kN - 1 - i % kN, j = u ^ 1;
      wrong += r[i] != s[base + j] + (j == kN - 1 ? 0 : s[base + j + 1]);
    }
  }
  return finish(wrong, kDev);
}

// Warps of all devices append words to the lists of their keys on device 0: lanes of equal key find
// each other by __match_any_sync, their leader reserves places, a shuffle tells them where.
// EXPECT 1 warp_mask|hang: full mask within the branch, in the tail some lanes never get there
// EXPECT 2 warp_mask|value|uninitialised: lane 0 is the source, which may not be in the group's mask
// EXPECT 3 warp_mask|hang: the mask of the first iteration is used in the tail as well
// EXPECT 4 race: the place is told through shared memory with no __syncwarp of the group
// EXPECT 5 scope|race: places are reserved by atomics of gpu scope from two devices
// EXPECT 6 none|portability: the mask is __activemask() within the branch; any subset is right
#include "common.h"

constexpr int kThreads = 64, kN = 150, kKeys = 3, kDev = 2, kRoom = 2 * kN;

__global__ void work(const unsigned* src, unsigned* count, unsigned* lists) {
  __shared__ unsigned told[kThreads / 32][kKeys];
  const unsigned t = threadIdx.x, lane = t % 32;
  const unsigned first = __ballot_sync(~0u, t < kN);
  for (unsigned base = 0; base < kN; base += kThreads) {
    const unsigned i = base + t;
    unsigned active = __ballot_sync(~0u, i < kN);
    if (BUG == 1) active = ~0u;
    if (BUG == 3) active = first;
    if (i < kN) {
      if (BUG == 6) active = __activemask();
      const unsigned v = src[i], key = v % kKeys;
      const unsigned mask = __match_any_sync(active, key);
      const unsigned leader = BUG == 2 ? 0 : __ffs(mask) - 1;
      unsigned place = 0;
      if (lane == __ffs(mask) - 1) {
        if (BUG == 5)
          place = atomicAdd(count + key, __popc(mask));
        else
          place = atomicAdd_system(count + key, __popc(mask));
        if (BUG == 4) told[t / 32][key] = place;
      }
      if (BUG == 4)
        place = *static_cast<volatile unsigned*>(&told[t / 32][key]);
      else
        place = __shfl_sync(mask, place, leader);
      place += __popc(mask & ((1u << lane) - 1));
      if (place < kRoom) lists[key * kRoom + place] = v;
    }
    __syncwarp();
  }
}

int main() {
  peers(kDev);
  unsigned* src[kDev];
  unsigned* count = alloc<unsigned>(0, kKeys);
  unsigned* lists = alloc<unsigned>(0, kKeys * kRoom);
  std::vector<unsigned> v(kN);
  std::vector<int> want(100000), have(100000);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, kN);
    for (int i = 0; i < kN; ++i) ++want[v[i] = 1 + 1000 * d + i * i % 907];
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, kThreads>>>(src[d], count, lists);
  }
  sync_all(kDev);
  const auto c = get(0, count, kKeys), l = get(0, lists, kKeys * kRoom);
  long wrong = 0;
  for (unsigned key = 0; key < kKeys; ++key)
    for (unsigned i = 0; i < c[key] && i < kRoom; ++i) {
      wrong += l[key * kRoom + i] % kKeys != key;
      ++have[l[key * kRoom + i] % have.size()];
    }
  wrong += want != have;
  return finish(wrong, kDev);
}

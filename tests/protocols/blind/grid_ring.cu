// A cooperative grid per device writes a buffer, synchronises, meets the peer's grid by flags of one
// thread, synchronises again and reads the peer's buffer. Buffers alternate from epoch to epoch.
// EXPECT 1 race: a block barrier before the flag is raised, the other blocks' stores are unordered
// EXPECT 2 race: no grid barrier after the flag was seen, the other blocks read unordered
// EXPECT 3 race|scope: the flag is raised by a relaxed store with no fence after the grid barrier
// EXPECT 4 scope|race: the flag is released at .gpu scope to a thread of another device
// EXPECT 5 race: a single buffer, written while the peer's blocks may still read the previous epoch
// EXPECT 6 none: a system fence before the grid barrier adds nothing
#include "common.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kThreads = 64, kBlocks = 3, kN = kThreads * kBlocks, kEpochs = 4, kDev = 2;

DEV void raise(unsigned* flag, unsigned v) {
  if (BUG == 3)
    st_relaxed(flag, v);
  else if (BUG == 4)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(v) : "memory");
  else
    st_release(flag, v);
}

__global__ void work(int dev, unsigned* mine, const unsigned* theirs, const unsigned* flag_mine,
                     unsigned* flag_theirs, unsigned* out) {
  cg::grid_group grid = cg::this_grid();
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  for (unsigned e = 0; e < kEpochs; ++e) {
    const unsigned half = BUG == 5 ? 0 : (e & 1) * kN;
    mine[half + i] = 1000 * dev + 200 * e + i;
    if (BUG == 6) __threadfence_system();
    if (BUG == 1)
      __syncthreads();
    else
      grid.sync();
    if (i == 0) {
      raise(flag_theirs, e + 1);
      wait_ge(flag_mine, e + 1);
    }
    if (BUG == 2)
      __syncthreads();
    else
      grid.sync();
    out[e * kN + i] = theirs[half + (i + 70) % kN];
  }
}

int main() {
  peers(kDev);
  unsigned *buffer[kDev], *flags[kDev], *out[kDev];
  for (int d = 0; d < kDev; ++d) {
    buffer[d] = alloc<unsigned>(d, 2 * kN);
    flags[d] = alloc<unsigned>(d, 1);
    out[d] = alloc<unsigned>(d, kEpochs * kN);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    void* args[] = {&d, &buffer[d], &buffer[1 - d], &flags[d], &flags[1 - d], &out[d]};
    CK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(work), kBlocks, kThreads, args, 0, 0));
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kEpochs * kN);
    for (int i = 0; i < kEpochs * kN; ++i)
      wrong += r[i] != static_cast<unsigned>(1000 * (1 - d) + 200 * (i / kN) + (i % kN + 70) % kN);
  }
  return finish(wrong, kDev);
}

// Gather by one warp per device: lane p polls the flag of peer p, votes tell when all have come, with growing back-off;
// then every lane reads every peer's row, acknowledgements guard the rows before the next round.
// EXPECT 1 hang: lanes without a peer vote "not yet" for ever in __all_sync
// EXPECT 2 race: __any_sync is content with the first flag, other rows are read too early
// EXPECT 3 race|portability: no __syncwarp after the vote; votes do not order memory between lanes
// EXPECT 4 race: lanes poll relaxed and nobody fences
// EXPECT 5 hang: the sender skips the flag of the last device, its lane polls with __nanosleep for ever
// EXPECT 6 none: relaxed polls, then every lane fences before the __syncwarp
#include "common.h"

static const int D = 4, N = 32, ROUNDS = 3;

struct Box {
  unsigned flag[D], ack[D], row[D][N];
};
struct Boxes {
  Box* of[D];
};

DEV void wait_all(const unsigned* flags, unsigned value) {
  unsigned lane = threadIdx.x, nap = 20;
  for (;;) {
    bool come = BUG != 1;
    if (lane < D)
      come = (BUG == 4 || BUG == 6 ? ld_relaxed(&flags[lane]) : ld_acquire(&flags[lane])) >= value;
    if (BUG == 2 ? __any_sync(~0u, lane < D && come) : __all_sync(~0u, come)) break;
    __nanosleep(nap);
    if (nap < 200) nap *= 2;
  }
  if (BUG == 6) __threadfence_system();
  if (BUG != 3) __syncwarp();
}

static __global__ void gather(Boxes boxes, unsigned* total, unsigned rank) {
  unsigned lane = threadIdx.x;
  Box* mine = boxes.of[rank];
  for (unsigned r = 1; r <= ROUNDS; ++r) {
    for (unsigned p = 0; p < D; ++p) boxes.of[p]->row[rank][lane] = r * (rank + 1) + lane;
    __syncwarp();
    if (lane < (BUG == 5 ? D - 1 : D)) st_release(&boxes.of[lane]->flag[rank], r);
    wait_all(mine->flag, r);
    for (unsigned p = 0; p < D; ++p) total[lane] += mine->row[p][(lane + 1) % N];
    __syncwarp();
    if (lane < D) st_release(&boxes.of[lane]->ack[rank], r);
    if (lane < D) wait_ge(&mine->ack[lane], r);
    __syncwarp();
  }
}

int main() {
  peers(D);
  Boxes boxes;
  unsigned* total[D];
  for (int d = 0; d < D; ++d) {
    boxes.of[d] = alloc<Box>(d, 1);
    total[d] = alloc<unsigned>(d, N);
  }
  sync_all(D);
  for (unsigned d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    gather<<<1, N>>>(boxes, total[d], d);
  }
  sync_all(D);
  long wrong = 0;
  for (int d = 0; d < D; ++d) {
    std::vector<unsigned> v = get(d, total[d], N);
    for (unsigned i = 0; i < N; ++i)
      wrong += v[i] != (1 + 2 + 3) * (1 + 2 + 3 + 4) + ROUNDS * D * ((i + 1) % N);
  }
  return finish(wrong, D);
}

// A token ring over 4 devices with two blocks each: block b of device d waits for the token of its predecessor, adds to
// the row that travels with it, passes both on; device 0 starts. A barrier counter ends every round.
// EXPECT 1 hang: device 0 waits for its predecessor before it starts the round: everybody waits in a circle
// EXPECT 2 hang: the barrier waits for one arrival per thread, but only one thread per block arrives
// EXPECT 3 hang: the token of device 2 is never passed on by its second block
// EXPECT 4 hang: as 3, and the poll stores what it reads, so the waiting block writes memory all the time
// EXPECT 5 none: polls store what they read to a trace of their own, which changes nothing
// EXPECT 6 race: the token is passed on before the row is written
#include "common.h"

static const int D = 4, BLOCKS = 2, N = 32, ROUNDS = 3;

struct Station {
  unsigned token[BLOCKS], row[BLOCKS][N], trace[BLOCKS];
};
struct Ring {
  Station* at[D];
  unsigned* arrived;
};

DEV void poll(unsigned* p, unsigned value, unsigned* trace) {
#if BUG == 4 || BUG == 5
  while (static_cast<int>((*trace = ld_acquire(p)) - value) < 0) {
  }
#else
  wait_ge(p, value);
#endif
}

static __global__ void run(Ring ring, unsigned rank) {
  unsigned i = threadIdx.x, b = blockIdx.x;
  Station *mine = ring.at[rank], *next = ring.at[(rank + 1) % D];
  for (unsigned r = 1; r <= ROUNDS; ++r) {
    // The row comes back to device 0 at the end of a round, which then starts the next one.
    unsigned wanted = rank == 0 && BUG != 1 ? r - 1 : r;
    if (i == 0) poll(&mine->token[b], wanted, &mine->trace[b]);
    __syncthreads();
    unsigned value = mine->row[b][i] + rank + 1;
    if (BUG != 6) next->row[b][i] = value;
    __syncthreads();
    if (i == 0 && !((BUG == 3 || BUG == 4) && rank == 2 && b == 1)) st_release(&next->token[b], r);
    if (BUG == 6) next->row[b][i] = value;
    __syncthreads();
    if (i == 0) {
      red_release(ring.arrived, 1);
      poll(ring.arrived, r * D * BLOCKS * (BUG == 2 ? N : 1), &mine->trace[b]);
    }
    __syncthreads();
  }
}

int main() {
  peers(D);
  Ring ring;
  for (int d = 0; d < D; ++d) ring.at[d] = alloc<Station>(d, 1);
  ring.arrived = alloc<unsigned>(0, 1);
  sync_all(D);
  for (unsigned d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    run<<<BLOCKS, N>>>(ring, d);
  }
  sync_all(D);
  long wrong = 0;
  Station h = get(0, ring.at[0], 1)[0];
  for (int i = 0; i < BLOCKS * N; ++i) wrong += h.row[i / N][i % N] != ROUNDS * (1 + 2 + 3 + 4);
  return finish(wrong, D);
}

// A channel of two slots from device 0 to device 1 with running counters "sent" and "taken", which overflow on the way;
// the receiver starts late: it first waits for a start flag that the sender sets after a burst of two messages.
// EXPECT 1 hang: the receiver waits for sent == r, but the first burst has already moved the counter past 1
// EXPECT 2 race: counters are compared as unsigned numbers, after the overflow the wait for the message is empty
// EXPECT 3 race: the sender runs three messages ahead in two slots
// EXPECT 4 race: the receiver counts a message as taken before it has read it
// EXPECT 5 hang: the sender waits for its last message to be taken, the receiver for two messages before it starts
// EXPECT 6 hang: only the lowest bit of the counter is compared, which says "not yet" when the sender is two ahead
#include "common.h"

static const int D = 2, N = 32, MESSAGES = 8;
static const unsigned BASE = 0xfffffffdu;

struct Channel {
  unsigned sent, start, slot[2][N];
};

static __global__ void sender(Channel* c, unsigned* taken) {
  unsigned ahead = BUG == 3 ? 3 : BUG == 5 ? 1 : 2;
  for (unsigned r = 1; r <= MESSAGES; ++r) {
    if (threadIdx.x == 0 && r > ahead) wait_ge(taken, BASE + r - ahead);
    __syncthreads();
    c->slot[r % 2][threadIdx.x] = r * threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) st_release(&c->sent, BASE + r);
    if (threadIdx.x == 0 && r == 2) st_release(&c->start, 1);
  }
}

static __global__ void receiver(Channel* c, unsigned* taken, unsigned* total) {
  if (threadIdx.x == 0) wait_ge(&c->start, 1);
  for (unsigned r = 1; r <= MESSAGES; ++r) {
    if (threadIdx.x == 0) {
      unsigned want = BASE + r;
#if BUG == 1
      while (ld_acquire(&c->sent) != want) {
      }
#elif BUG == 2
      while (ld_acquire(&c->sent) < want) {
      }
#elif BUG == 6
      while ((ld_acquire(&c->sent) ^ want) & 1) {
      }
#else
      wait_ge(&c->sent, want);
#endif
      if (BUG == 4) st_release(taken, BASE + r);
    }
    __syncthreads();
    total[threadIdx.x] += c->slot[r % 2][threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0 && BUG != 4) st_release(taken, BASE + r);
  }
}

int main() {
  peers(D);
  Channel h = {};
  h.sent = BASE;
  Channel* c = alloc<Channel>(1, 1);
  unsigned *taken = alloc<unsigned>(0, 1), *total = alloc<unsigned>(1, N);
  put(1, c, std::vector<Channel>{h});
  put(0, taken, std::vector<unsigned>{BASE});
  sync_all(D);
  CK(cudaSetDevice(1));
  receiver<<<1, N>>>(c, taken, total);
  CK(cudaSetDevice(0));
  sender<<<1, N>>>(c, taken);
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, total, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != MESSAGES * (MESSAGES + 1) / 2 * i;
  return finish(wrong, D);
}

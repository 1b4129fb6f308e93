// A sliding window of four slots in each direction between two devices: block 0 sends, block 1 receives; the sender
// counts items in the receiver's memory, the receiver counts credits in the sender's.
// EXPECT 1 race: five items in flight through four slots; a slot is overwritten while it is read
// EXPECT 2 race: credit is a relaxed store without a fence; the reads of the slot are not released
// EXPECT 3 scope: credit is released at gpu scope
// EXPECT 4 race: the item is counted before the barrier that collects its words
// EXPECT 5 none: credit for every second item only
// EXPECT 6 hang: credit for every fifth item only, but the window is four
#include "common.h"

constexpr int kThreads = 32, kWindow = 4, kItems = 10;
constexpr int kFlight = BUG == 1 ? kWindow + 1 : kWindow;

struct Side {
  unsigned* slot;    // [kWindow][kThreads] written by the other device
  unsigned* items;   // written by the other device
  unsigned* credit;  // written by the other device
  unsigned* out;     // [kItems][kThreads]
};

DEV void give_credit(unsigned* p, unsigned n) {
  if (BUG == 5 && n % 2) return;
  if (BUG == 6 && n % 5) return;
  if (BUG == 2)
    st_relaxed(p, n);
  else if (BUG == 3)
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(n) : "memory");
  else
    st_release(p, n);
}

__global__ void run(Side own, Side other, int me) {
  const int t = threadIdx.x;
  for (int n = 1; n <= kItems; ++n) {
    if (blockIdx.x == 0) {
      if (t == 0 && n > kFlight) wait_ge(own.credit, n - kFlight);
      __syncthreads();
      other.slot[n % kWindow * kThreads + t] = n * 100 + me * 50 + t;
      if (BUG != 4) __syncthreads();
      if (t == 0) st_release(other.items, n);
    } else {
      if (t == 0) wait_ge(own.items, n);
      __syncthreads();
      own.out[(n - 1) * kThreads + t] = own.slot[n % kWindow * kThreads + t];
      __syncthreads();
      if (t == 0) give_credit(other.credit, n);
    }
  }
}

int main() {
  peers(2);
  Side side[2];
  for (int d = 0; d < 2; ++d)
    side[d] = {alloc<unsigned>(d, kWindow * kThreads), alloc<unsigned>(d, 1), alloc<unsigned>(d, 1),
               alloc<unsigned>(d, kItems * kThreads)};
  sync_all(2);
  for (int d = 0; d < 2; ++d) {
    CK(cudaSetDevice(d));
    run<<<2, kThreads>>>(side[d], side[1 - d], d);
    CK(cudaGetLastError());
  }
  sync_all(2);
  long wrong = 0;
  for (int d = 0; d < 2; ++d) {
    const auto out = get(d, side[d].out, kItems * kThreads);
    for (int j = 0; j < kItems * kThreads; ++j)
      wrong += out[j] != unsigned((j / kThreads + 1) * 100 + (1 - d) * 50 + j % kThreads);
  }
  return finish(wrong, 2);
}

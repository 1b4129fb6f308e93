// Ring all-reduce, 4 devices, 2 slots per link, credits go back to the sender.
// EXPECT 1 race: credit is given back before all threads have read the slot
// EXPECT 2 race: one credit too many
// EXPECT 3 race: credit stored relaxed
// EXPECT 4 race: head published before all threads have stored
#include "common.h"
constexpr int R = 4, C = 512, T = 128, S = 2, CALLS = 2;
__global__ void Ring(float* data, float* slots, unsigned* head, float* rslots, unsigned* rhead,
                     unsigned* credit, unsigned* lcredit, int rank) {
  unsigned sent = 0, got = 0;
  for (int call = 0; call < CALLS; ++call)
    for (int step = 0; step < 2 * (R - 1); ++step) {
      const bool gather = step >= R - 1;
      const int k = gather ? step - (R - 1) : step;
      const int sc = ((gather ? rank + 1 - k : rank - k) + 2 * R) % R;
      const int rc = (sc - 1 + R) % R;
      if (threadIdx.x == 0) {
#if BUG == 2
        while ((int)(ld_acquire(credit) + S + 1 - sent) <= 0) {
        }
#else
        while ((int)(ld_acquire(credit) + S - sent) <= 0) {
        }
#endif
      }
      __syncthreads();
      for (int i = threadIdx.x; i < C; i += T) rslots[(sent % S) * C + i] = data[sc * C + i];
#if BUG != 4
      __syncthreads();
#endif
      ++sent;
      if (threadIdx.x == 0) st_release(rhead, sent);
      ++got;
      if (threadIdx.x == 0) wait_ge(head, got);
      __syncthreads();
      for (int i = threadIdx.x; i < C; i += T) {
        const float v = slots[((got - 1) % S) * C + i];
        data[rc * C + i] = gather ? v : data[rc * C + i] + v;
      }
#if BUG != 1
      __syncthreads();
#endif
#if BUG == 3
      if (threadIdx.x == 0) st_relaxed(lcredit, got);
#else
      if (threadIdx.x == 0) st_release(lcredit, got);
#endif
    }
}
int main() {
  peers(R);
  float *data[R], *slots[R];
  unsigned *head[R], *credit[R];
  for (int r = 0; r < R; ++r) {
    data[r] = alloc<float>(r, R * C);
    slots[r] = alloc<float>(r, S * C);
    head[r] = alloc<unsigned>(r, 1);
    credit[r] = alloc<unsigned>(r, 1);
    std::vector<float> v(R * C);
    for (int i = 0; i < R * C; ++i) v[i] = (r + 1) * (i % 7);
    put(r, data[r], v);
  }
  sync_all(R);
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    const int right = (r + 1) % R, left = (r + R - 1) % R;
    Ring<<<1, T>>>(data[r], slots[r], head[r], slots[right], head[right], credit[r], credit[left],
                   r);
  }
  sync_all(R);
  long wrong = 0;
  for (int r = 0; r < R; ++r) {
    auto v = get(r, data[r], R * C);
    for (int i = 0; i < R * C; ++i) wrong += v[i] != 10.f * R * (i % 7);
  }
  return finish(wrong, R);
}

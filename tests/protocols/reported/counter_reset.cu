// Arrival counters that are reset for every call; two sets in turn, the set of the next call is reset by the owner in this one.
// EXPECT 1 race: reset by cudaMemsetAsync in front of the kernel: fast peers may already have added
// EXPECT 2 race: the kernel resets the counter it has just waited for, weak, and uses it again at the next call
// EXPECT 3 race: the kernel resets the counter that peers may already add to for the next call
#include "common.h"
constexpr int R = 4, N = 256, T = 64, CALLS = 5;
struct Ptrs {
  int* box[R];
  unsigned* count[R];
};
__global__ void Gather(Ptrs p, int rank, int* out, int call) {
#if BUG == 1 || BUG == 2
  const int set = 0;
#else
  const int set = call % 3;
#endif
  for (int r = 0; r < R; ++r)
    for (int i = threadIdx.x; i < N; i += T)
      p.box[r][((call & 1) * R + rank) * N + i] = rank * 100 + call + i;
  __syncthreads();
  if (threadIdx.x < R) red_release(p.count[threadIdx.x] + set, 1);
  if (threadIdx.x == 0) wait_ge(p.count[rank] + set, R);
  __syncthreads();
  for (int i = threadIdx.x; i < R * N; i += T) out[i] = p.box[rank][(call & 1) * R * N + i];
#if BUG == 2
  if (threadIdx.x == 0) p.count[rank][set] = 0;
#elif BUG == 3
  if (threadIdx.x == 0) p.count[rank][(call + 1) % 3] = 0;
#elif BUG == 0
  // Nobody adds to set call - 1 any more (all R have been seen there) and nobody adds to it again before call + 2.
  if (threadIdx.x == 0) p.count[rank][(call + 2) % 3] = 0;
#endif
}
int main() {
  peers(R);
  Ptrs p;
  int* out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    p.box[r] = alloc<int>(r, 2 * R * N);
    p.count[r] = alloc<unsigned>(r, 3);
    for (auto& o : out[r]) o = alloc<int>(r, R * N);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      if (BUG == 1) CK(cudaMemsetAsync(p.count[r], 0, 4));
      Gather<<<1, T>>>(p, r, out[r][c], c);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], R * N);
      for (int i = 0; i < R * N; ++i) wrong += v[i] != i / N * 100 + c + i % N;
    }
  return finish(wrong, R);
}

// Arrival bits: every rank sets its bit in a peer's word by atomicOr_system; a warp polls until all bits are there.
// EXPECT 1 race: atomicOr_system without a fence
// EXPECT 2 scope: atomicOr() of device scope
// LATER 3 deadlock|value: the word is set by load, or, store
#include "common.h"
constexpr int R = 8, N = 64, T = 64, CALLS = 3;
struct Ptrs {
  int* box[R];
  unsigned* word[R];
};
__global__ void Gather(Ptrs p, int rank, int* out, int call) {
  if (threadIdx.x < N)
    for (int r = 0; r < R; ++r)
      p.box[r][((call & 1) * R + rank) * N + threadIdx.x] = rank * 100 + threadIdx.x + call;
  __syncthreads();
  if (threadIdx.x < R) {
    unsigned* w = p.word[threadIdx.x] + call;
#if BUG == 1
    atomicOr_system(w, 1u << rank);
#elif BUG == 2
    __threadfence_system();
    atomicOr(w, 1u << rank);
#elif BUG == 3
    __threadfence_system();
    st_relaxed(w, ld_relaxed(w) | 1u << rank);
    for (int i = 0; i < 50 && !(ld_relaxed(w) >> rank & 1); ++i)
      st_relaxed(w, ld_relaxed(w) | 1u << rank);
#else
    __threadfence_system();
    atomicOr_system(w, 1u << rank);
#endif
  }
  if (threadIdx.x < 32) {
    while (true) {
      const unsigned v = ld_acquire(p.word[rank] + call);
      if (__all_sync(~0u, v == (1u << R) - 1)) break;
      __nanosleep(50);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < R * N; i += T) out[i] = p.box[rank][(call & 1) * R * N + i];
}
int main() {
  peers(R);
  Ptrs p;
  int* out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    p.box[r] = alloc<int>(r, 2 * R * N);
    p.word[r] = alloc<unsigned>(r, CALLS);
    for (auto& o : out[r]) o = alloc<int>(r, R * N);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      Gather<<<1, T>>>(p, r, out[r][c], c);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], R * N);
      for (int i = 0; i < R * N; ++i) wrong += v[i] != i / N * 100 + i % N + c;
    }
  return finish(wrong, R);
}

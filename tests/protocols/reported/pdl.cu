// Programmatic dependent launch: a norm kernel behind an all-reduce kernel that lets it start early; two devices.
// EXPECT 1 race: no griddepcontrol.wait in the second kernel
// EXPECT 2 race: only thread 0 waits and no barrier follows
// EXPECT 3 race: reads before the wait (prefetch of what the first kernel writes)
// EXPECT 4 race: the third kernel reads what the first wrote; the second one (PDL) never waits
#include "common.h"
constexpr int R = 2, N = 1024, T = 128, CALLS = 3;
struct Ptrs {
  int* box[R];
  unsigned* flag[R];
};
__global__ void Reduce(Ptrs p, int rank, int* sum, unsigned epoch) {
  cudaGridDependencySynchronize();
  for (int i = threadIdx.x; i < N; i += T) p.box[1 - rank][(epoch & 1) * N + i] = rank + i + epoch;
  __syncthreads();
  if (threadIdx.x == 0) {
    st_release(p.flag[1 - rank], epoch);
    wait_ge(p.flag[rank], epoch);
  }
  __syncthreads();
  cudaTriggerProgrammaticLaunchCompletion();
  for (int i = threadIdx.x; i < N; i += T)
    sum[i] = rank + i + epoch + p.box[rank][(epoch & 1) * N + i];
}
__global__ void Norm(const int* sum, int* out) {
  const int at = blockIdx.x * T + threadIdx.x;
#if BUG == 3
  int v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(sum + at) : "memory");
#endif
#if BUG == 2
  if (threadIdx.x == 0) cudaGridDependencySynchronize();
#elif BUG != 1 && BUG != 4
  cudaGridDependencySynchronize();
#endif
#if BUG == 4
  cudaTriggerProgrammaticLaunchCompletion();
  out[at] = at;
#elif BUG == 3
  out[at] = v * 2;
#else
  int v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(sum + at) : "memory");
  out[at] = v * 2;
#endif
}
__global__ void Third(const int* sum, int* out) {
  cudaGridDependencySynchronize();
  const int at = blockIdx.x * T + threadIdx.x;
  out[at] = sum[at] * 2;
}
template <class... A>
void launch(void (*k)(A...), int b, A... a) {
  cudaLaunchConfig_t c{};
  c.gridDim = b;
  c.blockDim = T;
  cudaLaunchAttribute at{};
  at.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  at.val.programmaticStreamSerializationAllowed = 1;
  c.attrs = &at;
  c.numAttrs = 1;
  CK(cudaLaunchKernelEx(&c, k, a...));
}
int main() {
  peers(R);
  Ptrs p;
  int *sum[R], *out[R][CALLS];
  for (int r = 0; r < R; ++r) {
    p.box[r] = alloc<int>(r, 2 * N);
    p.flag[r] = alloc<unsigned>(r, 1);
    sum[r] = alloc<int>(r, N);
    for (auto& o : out[r]) o = alloc<int>(r, N);
  }
  sync_all(R);
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      CK(cudaSetDevice(r));
      launch<Ptrs, int, int*, unsigned>(Reduce, 1, p, r, sum[r], c + 1);
      launch<const int*, int*>(Norm, N / T, sum[r], out[r][c]);
      if (BUG == 4) launch<const int*, int*>(Third, N / T, sum[r], out[r][c]);
    }
  sync_all(R);
  long wrong = 0;
  for (int c = 0; c < CALLS; ++c)
    for (int r = 0; r < R; ++r) {
      auto v = get(r, out[r][c], N);
      for (int i = 0; i < N; ++i) wrong += v[i] != 2 * (2 * i + 2 * c + 3);
    }
  return finish(wrong, R);
}

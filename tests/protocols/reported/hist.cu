// Histogram with bins on device 0, counted by all devices.
// EXPECT 1 scope: atomicAdd() of device scope on bins that several devices add to
// EXPECT 2 race: bins read by device 0's kernel before the others are done (waits only for its own grid)
// EXPECT 3 race: bins are zeroed by a kernel of device 0 without telling the others
#include "common.h"
constexpr int R = 4, BINS = 32, N = 1000, T = 128, B = 2;
__global__ void Zero(unsigned* bins, unsigned* done) {
  if (threadIdx.x < BINS) bins[threadIdx.x] = 0;
  if (threadIdx.x == 0) *done = 0;
}
__global__ void Count(unsigned* bins, unsigned* done, int rank) {
  for (int i = blockIdx.x * T + threadIdx.x; i < N; i += B * T)
#if BUG == 1
    atomicAdd(bins + (i * 7 + rank) % BINS, 1);
#else
    atomicAdd_system(bins + (i * 7 + rank) % BINS, 1);
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    atomicAdd_system(done, 1);
  }
}
__global__ void Read(const unsigned* bins, unsigned* done, unsigned* out) {
#if BUG == 2
  if (threadIdx.x == 0) wait_ge(done, B);
#else
  if (threadIdx.x == 0) wait_ge(done, R * B);
#endif
  __syncthreads();
  if (threadIdx.x < BINS) out[threadIdx.x] = bins[threadIdx.x];
}
int main() {
  peers(R);
  unsigned *bins = alloc<unsigned>(0, BINS), *done = alloc<unsigned>(0, 1),
           *out = alloc<unsigned>(0, BINS);
  sync_all(R);
  CK(cudaSetDevice(0));
  Zero<<<1, 32>>>(bins, done);
  if (BUG != 3) CK(cudaDeviceSynchronize());
  for (int r = 0; r < R; ++r) {
    CK(cudaSetDevice(r));
    Count<<<B, T>>>(bins, done, r);
  }
  CK(cudaSetDevice(0));
  Read<<<1, 32>>>(bins, done, out);
  sync_all(R);
  std::vector<unsigned> want(BINS);
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < N; ++i) ++want[(i * 7 + r) % BINS];
  long wrong = 0;
  auto v = get(0, out, BINS);
  for (int i = 0; i < BINS; ++i) wrong += v[i] != want[i];
  return finish(wrong, R);
}

// Two cooperative grids iterate on managed memory and meet by bytes in pinned memory: each grid syncs, one thread of device
// 1 says that it is there, one of device 0 lets it go on. The host prefetches, synchronises and reads the result in a loop.
// EXPECT 1 none: the host reads a progress word in managed memory until the grids are done, while they run
// EXPECT 2 race: the grids do not meet between writing the vector and reading the other's part of it
// EXPECT 3 race: the thread that meets the peer does so without a grid sync before it
// EXPECT 4 none: another kernel waits for the host's word, which comes after that loop
#include <cooperative_groups.h>
#include "common.h"
namespace cg = cooperative_groups;
constexpr int BLOCKS = 8, T = 256, N = 16384, STEPS = 5, ROW = 64;
struct Shared {
  float* x[2];  // read in one step, written in the next
  double* sum;
  unsigned* progress;
  unsigned char* arrived;
};
DEV unsigned load(unsigned char* p) {
  unsigned v;
  asm volatile("ld.acquire.sys.global.u8 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
DEV void store(unsigned char* p, unsigned v) {
  asm volatile("st.release.sys.global.u8 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
DEV void meet(const Shared& s, int rank, bool first_sync = true) {
  cg::grid_group grid = cg::this_grid();
  if (first_sync) grid.sync();
  if (grid.thread_rank() == 0) {
    if (rank == 1) store(s.arrived, 1);
    while (load(s.arrived) != (rank == 0 ? 1 : 0)) {
    }
    if (rank == 0) store(s.arrived, 0);
  }
  grid.sync();
}
__global__ void Iterate(Shared s, int rank) {
  const int first = rank * BLOCKS * T + blockIdx.x * T + threadIdx.x;
  for (int step = 0; step < STEPS; ++step) {
    const float* from = s.x[step % 2];
    float* to = s.x[(step + 1) % 2];
    for (int i = first; i < N; i += 2 * BLOCKS * T) to[i] = from[i] + from[(i + N / 2 + 1) % N];
    if (BUG != 2) meet(s, rank, BUG != 3);
    if (first == 0) st_release(s.progress, step + 1);
  }
  if (BUG == 2) meet(s, rank);
  float mine = 0;
  for (int i = first; i < N; i += 2 * BLOCKS * T) mine += s.x[STEPS % 2][i];
  atomicAdd_system(s.sum, static_cast<double>(mine));
}
__global__ void Wait(const unsigned* word) { wait_ge(word, 1); }
int main() {
  peers(2);
  Shared s;
  int* rows;
  unsigned* word;
  CK(cudaMallocManaged(&rows, (N / ROW + 1) * sizeof(int)));
  CK(cudaHostAlloc(&word, sizeof *word, cudaHostAllocPortable));
  for (int i = 0; i <= N / ROW; ++i) rows[i] = i * ROW;
  *word = 0;
  for (float*& x : s.x) CK(cudaMallocManaged(&x, N * sizeof(float)));
  CK(cudaMallocManaged(&s.sum, sizeof(double)));
  CK(cudaMallocManaged(&s.progress, sizeof(unsigned)));
  CK(cudaHostAlloc(&s.arrived, 1, cudaHostAllocPortable));
  for (int i = 0; i < N; ++i) s.x[0][i] = 1, s.x[1][i] = 0;
  *s.sum = 0;
  *s.progress = 0;
  *s.arrived = 0;
  cudaStream_t stream[2];
  for (int d = 0; d < 2; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaStreamCreate(&stream[d]));
    void* arguments[] = {&s, &d};
    CK(cudaLaunchCooperativeKernel((void*)Iterate, dim3(BLOCKS), dim3(T), arguments, 0, stream[d]));
  }
#if BUG == 1
  while (__atomic_load_n(s.progress, __ATOMIC_ACQUIRE) < STEPS) {
  }
#endif
  cudaStream_t waiting;
  CK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  if (BUG == 4) Wait<<<1, 1, 0, waiting>>>(word);
  cudaMemLocation host = {};
  host.type = cudaMemLocationTypeHost;
  CK(cudaMemPrefetchAsync(s.x[STEPS % 2], N * sizeof(float), host, 0, nullptr));
  CK(cudaMemPrefetchAsync(s.sum, sizeof(double), host, 0, nullptr));
  for (int d = 0; d < 2; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaStreamSynchronize(stream[d]));
  }
  // The prefetches may still be under way.
  long wrong = *s.sum != static_cast<double>(N) * (1 << STEPS);
  // Row by row; the end of the row is read again in every round. The counters are static, so
  // neither registers nor the stack need change from one round to the next.
  static int row, i;
  for (row = 0; row < N / ROW; ++row)
    for (i = rows[row]; rows[row + 1] > i; ++i) wrong += s.x[STEPS % 2][i] != 1 << STEPS;
  __atomic_store_n(word, 1u, __ATOMIC_RELEASE);
  sync_all(2);
  CK(cudaStreamDestroy(waiting));
  CK(cudaFree(rows));
  CK(cudaFreeHost(word));
  for (int d = 0; d < 2; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaStreamDestroy(stream[d]));
  }
  for (float* x : s.x) CK(cudaFree(x));
  CK(cudaFree(s.sum));
  CK(cudaFree(s.progress));
  CK(cudaFreeHost(s.arrived));
  return finish(wrong, 2);
}

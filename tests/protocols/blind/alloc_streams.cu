// Stream-ordered scratch memory: allocated and filled in a stream of device 0, added up by device 1 (which may access
// the pool), freed in the first stream after an event of the reader; a new scratch area in every epoch.
// EXPECT 1 use_after_free|race: freed without waiting for the reader, nothing orders the reads before the free
// EXPECT 2 race|use_after_free: the reader does not wait for the allocation and the fill
// EXPECT 3 use_after_free: the scratch area is freed before the reader is launched, and the reader waits for that
// EXPECT 4 none: freed in a third stream that waited for the reader; any stream ordered after the uses may free
// EXPECT 5 uninitialised: the accumulating fill relies on fresh memory being zero, there is no memset
// EXPECT 6 none: the host synchronises with the reader's stream before the free, no event is needed
#include "common.h"

static const int D = 2, N = 128, EPOCHS = 4;

static __global__ void fill(unsigned* scratch, unsigned e) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  scratch[i] += e * 10 + i;
}

static __global__ void add(const unsigned* scratch, unsigned* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  total[i] += scratch[i];
}

int main() {
  peers(D);
  const size_t bytes = N * sizeof(unsigned);
  unsigned* total = alloc<unsigned>(1, N);
  cudaStream_t s0, s1, third;
  cudaEvent_t filled, added;
  CK(cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&added, cudaEventDisableTiming));
  CK(cudaSetDevice(0));
  CK(cudaStreamCreateWithFlags(&s0, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
  cudaMemPool_t pool;
  CK(cudaDeviceGetDefaultMemPool(&pool, 0));
  cudaMemAccessDesc access = {};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = 1;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  CK(cudaMemPoolSetAccess(pool, &access, 1));
  sync_all(D);

  for (int e = 0; e < EPOCHS; ++e) {
    unsigned* scratch;
    CK(cudaSetDevice(0));
    CK(cudaMallocAsync(&scratch, bytes, s0));
    if (BUG != 5) CK(cudaMemsetAsync(scratch, 0, bytes, s0));
    fill<<<2, N / 2, 0, s0>>>(scratch, e);
    if (BUG == 3) CK(cudaFreeAsync(scratch, s0));
    CK(cudaEventRecord(filled, s0));
    CK(cudaSetDevice(1));
    if (BUG != 2) CK(cudaStreamWaitEvent(s1, filled, 0));
    add<<<2, N / 2, 0, s1>>>(scratch, total);
    CK(cudaEventRecord(added, s1));
    CK(cudaSetDevice(0));
#if BUG == 1
    CK(cudaFreeAsync(scratch, s0));
#elif BUG == 4
    CK(cudaStreamWaitEvent(third, added, 0));
    CK(cudaFreeAsync(scratch, third));
#elif BUG == 6
    CK(cudaStreamSynchronize(s1));
    CK(cudaFreeAsync(scratch, s0));
#elif BUG != 3
    CK(cudaStreamWaitEvent(s0, added, 0));
    CK(cudaFreeAsync(scratch, s0));
#endif
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, total, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != 10 * (0 + 1 + 2 + 3) + EPOCHS * i;
  for (cudaStream_t s : {s0, s1, third}) CK(cudaStreamDestroy(s));
  CK(cudaEventDestroy(filled));
  CK(cudaEventDestroy(added));
  return finish(wrong, D);
}

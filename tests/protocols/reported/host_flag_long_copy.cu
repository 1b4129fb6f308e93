// A kernel waits in pinned memory for the host's word that a long copy into its device is over, and reads the end of what
// the copy brings, which comes last.
// EXPECT 1 race: the host gives its word as soon as the copy is enqueued
// EXPECT 2 weak_spin|race: the kernel polls with weak loads
// EXPECT 3 race: the kernel polls volatile and has no fence behind it
// EXPECT 4 none: the host waits for an event behind the copy, not for the stream
#include "common.h"
constexpr int ALL = 1 << 18, LAST = 2048, T = 128;
DEV unsigned look(const unsigned* flag) {
  unsigned v;
#if BUG == 2
  asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
#elif BUG == 3
  asm volatile("ld.volatile.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
#else
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
#endif
  return v;
}
__global__ void Read(const unsigned* flag, const int* data, int* out) {
  if (threadIdx.x == 0)
    while (look(flag) == 0) {
    }
  __syncthreads();
  for (int i = threadIdx.x; i < LAST; i += T) out[i] = data[ALL - LAST + i];
}
int main() {
  peers(2);
  int *data = alloc<int>(0, ALL), *source = alloc<int>(1, ALL), *out = alloc<int>(0, LAST);
  std::vector<int> values(ALL);
  for (int i = 0; i < ALL; ++i) values[i] = 9 * i + 2;
  put(1, source, values);
  unsigned* flag;
  CK(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocPortable));
  *flag = 0;
  sync_all(2);
  cudaStream_t copies, work;
  cudaEvent_t over;
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&over, cudaEventDisableTiming));
  CK(cudaSetDevice(0));
  CK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
  Read<<<1, T, 0, work>>>(flag, data, out);
  CK(cudaSetDevice(1));
  CK(cudaMemcpyPeerAsync(data, 0, source, 1, ALL * sizeof(int), copies));
  CK(cudaEventRecord(over, copies));
  if (BUG == 4)
    CK(cudaEventSynchronize(over));
  else if (BUG != 1)
    CK(cudaStreamSynchronize(copies));
  __atomic_store_n(flag, 1u, __ATOMIC_RELEASE);
  sync_all(2);
  long wrong = 0;
  const auto got = get(0, out, LAST);
  for (int i = 0; i < LAST; ++i) wrong += got[i] != values[ALL - LAST + i];
  CK(cudaSetDevice(1));
  CK(cudaEventDestroy(over));
  CK(cudaStreamDestroy(copies));
  CK(cudaSetDevice(0));
  CK(cudaStreamDestroy(work));
  CK(cudaFreeHost(flag));
  return finish(wrong, 2);
}

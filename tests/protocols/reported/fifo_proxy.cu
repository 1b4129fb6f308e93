// A kernel fills one of two buffers in turn and posts a request in pinned memory; a proxy thread of the host copies the
// buffer to the peer and posts how far it is, which the kernel reads before it fills a buffer again.
// EXPECT 1 race: the request is posted without a fence
// EXPECT 2 race: the proxy says done before the copy is
// EXPECT 3 weak_spin|race: the kernel polls the answer with weak loads
// EXPECT 4 race: the kernel does not wait for the answer
// EXPECT 5 none: release and acquire in place of fences and volatile
#include <thread>
#include "common.h"
constexpr int N = 1024, T = 128, REQUESTS = 5;
struct Fifo {
  unsigned posted, pad[31], done;
};
DEV void post(unsigned* posted, unsigned k) {
#if BUG == 5
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(posted), "r"(k) : "memory");
#else
  if (BUG != 1) __threadfence_system();
  *(volatile unsigned*)posted = k;
#endif
}
DEV unsigned answer(const unsigned* done) {
  unsigned v;
#if BUG == 3
  asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(done) : "memory");
#elif BUG == 5
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(done) : "memory");
#else
  v = *(const volatile unsigned*)done;
#endif
  return v;
}
__global__ void Produce(Fifo* fifo, int* buffers) {
  for (unsigned k = 0; k < REQUESTS; ++k) {
    if (threadIdx.x == 0 && k >= 2 && BUG != 4) {
      while (answer(&fifo->done) < k - 1) {
      }
      if (BUG != 5) __threadfence_system();
    }
    __syncthreads();
    for (int i = threadIdx.x; i < N; i += T) buffers[k % 2 * N + i] = k * N + i;
    __syncthreads();
    if (threadIdx.x == 0) post(&fifo->posted, k + 1);
  }
}
int main() {
  peers(2);
  int *buffers = alloc<int>(0, 2 * N), *out = alloc<int>(1, REQUESTS * N);
  Fifo* fifo;
  CK(cudaHostAlloc(&fifo, sizeof *fifo, cudaHostAllocPortable));
  std::memset(fifo, 0, sizeof *fifo);
  sync_all(2);
  std::thread proxy([=] {
    CK(cudaSetDevice(1));
    cudaStream_t copies;
    CK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    for (unsigned k = 0; k < REQUESTS; ++k) {
      while (__atomic_load_n(&fifo->posted, __ATOMIC_ACQUIRE) <= k) std::this_thread::yield();
      CK(cudaMemcpyPeerAsync(out + k * N, 1, buffers + k % 2 * N, 0, N * sizeof(int), copies));
      if (BUG != 2) CK(cudaStreamSynchronize(copies));
      __atomic_store_n(&fifo->done, k + 1, __ATOMIC_RELEASE);
    }
    CK(cudaStreamSynchronize(copies));
    CK(cudaStreamDestroy(copies));
  });
  CK(cudaSetDevice(0));
  cudaStream_t work;
  CK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
  Produce<<<1, T, 0, work>>>(fifo, buffers);
  proxy.join();
  sync_all(2);
  long wrong = 0;
  const auto got = get(1, out, REQUESTS * N);
  for (int i = 0; i < REQUESTS * N; ++i) wrong += got[i] != i;
  CK(cudaSetDevice(0));
  CK(cudaStreamDestroy(work));
  CK(cudaFreeHost(fifo));
  return finish(wrong, 2);
}

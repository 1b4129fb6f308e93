// The host tells a running kernel by a flag in pinned memory that its input (a copy in another stream) is there.
// EXPECT 1 weak_spin: kernel polls the flag weak
// EXPECT 2 race: host sets the flag before the copy has ended
// EXPECT 3 race: kernel polls volatile, no fence, then reads the data weak
#include <atomic>
#include "common.h"
constexpr int N = 4096, T = 128;
__global__ void Wait(unsigned* flag, const int* data, int* out) {
  if (threadIdx.x == 0) {
#if BUG == 1
    unsigned f;
    do asm volatile("ld.u32 %0, [%1];" : "=r"(f) : "l"(flag) : "memory");
    while (f == 0);
    __threadfence_system();
#elif BUG == 3
    while (*(volatile unsigned*)flag == 0) {
    }
#else
    unsigned f;
    do asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(f) : "l"(flag) : "memory");
    while (f == 0);
#endif
  }
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += T) out[i] = data[i];
}
int main() {
  peers(2);
  int *data = alloc<int>(0, N), *src = alloc<int>(1, N), *out = alloc<int>(0, N);
  std::vector<int> v(N);
  for (int i = 0; i < N; ++i) v[i] = i * 5;
  put(1, src, v);
  unsigned* flag;
  CK(cudaHostAlloc(&flag, 4, cudaHostAllocPortable));
  *flag = 0;
  sync_all(2);
  CK(cudaSetDevice(0));
  cudaStream_t a, b;
  CK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CK(cudaSetDevice(1));
  CK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CK(cudaSetDevice(0));
  Wait<<<1, T, 0, a>>>(flag, data, out);
  CK(cudaSetDevice(1));
  CK(cudaMemcpyPeerAsync(data, 0, src, 1, N * 4, b));
  if (BUG != 2) CK(cudaStreamSynchronize(b));
  std::atomic_ref<unsigned>(*flag).store(1, std::memory_order_release);
  sync_all(2);
  long wrong = 0;
  auto w = get(0, out, N);
  for (int i = 0; i < N; ++i) wrong += w[i] != v[i];
  CK(cudaStreamDestroy(b));
  CK(cudaSetDevice(0));
  CK(cudaStreamDestroy(a));
  CK(cudaFreeHost(flag));
  return finish(wrong, 2);
}

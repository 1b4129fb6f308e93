// A temporary buffer of device 1 is read by device 0's kernel.
// EXPECT 1 use_after_free|not_mapped: freed while the peer's kernel still reads
// EXPECT 2 not_mapped: peer access is not enabled
// EXPECT 3 use_after_free|not_mapped: an IPC-like alias: pointer kept in a device table after the buffer was freed and the next call uses the table
#include "common.h"
constexpr int N = 4096, T = 128;
struct Table {
  const int* p;
};
__global__ void Read(const Table* t, unsigned* go, int* out) {
  if (threadIdx.x == 0) wait_ge(go, 1);
  __syncthreads();
  const int* p = t->p;
  for (int i = threadIdx.x; i < N; i += T) out[i] = p[i];
}
__global__ void Go(unsigned* go) { st_release(go, 1); }
int main() {
  if (BUG != 2)
    peers(2);
  else {
    CK(cudaSetDevice(1));
    CK(cudaDeviceEnablePeerAccess(0, 0));
  }
  int *p, *out = alloc<int>(0, N);
  unsigned* go = alloc<unsigned>(0, 1);
  Table* t = alloc<Table>(0, 1);
  CK(cudaSetDevice(1));
  CK(cudaMalloc(&p, N * 4));
  CK(cudaMemset(p, 1, N * 4));
  cudaStream_t s;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  put(0, t, std::vector<Table>{{p}});
  sync_all(2);
  if (BUG == 3) {
    CK(cudaSetDevice(1));
    CK(cudaFree(p));
  }
  CK(cudaSetDevice(0));
  Read<<<1, T>>>(t, go, out);
  if (BUG == 1) {
    CK(cudaSetDevice(1));
    CK(cudaFree(p));
  }
  CK(cudaSetDevice(1));
  Go<<<1, 1, 0, s>>>(go);
  sync_all(2);
  long wrong = 0;
  auto v = get(0, out, N);
  for (int i = 0; i < N; ++i) wrong += v[i] != 0x01010101;
  CK(cudaSetDevice(1));
  CK(cudaStreamDestroy(s));
  if (BUG != 1 && BUG != 3) CK(cudaFree(p));
  return finish(wrong, 2);
}

// The host stages chunks through two pinned buffers to device 0, a kernel pushes them to device 1, results come back by
// an asynchronous copy into pinned memory; events tell the host when a staging buffer or a result may be touched.
// EXPECT 1 hostrace: the host refills a staging buffer without waiting for the copy out of it
// EXPECT 2 hostrace: the awaited event was recorded before the copy out of the staging buffer
// EXPECT 3 hostrace: the host reads the results after synchronising with the stream of the pushes, not of the copy back
// EXPECT 4 hostrace: cudaStreamQuery is called for the stream of the copy back but its answer is ignored
// EXPECT 5 none: waits for the copy of the chunk before, which the stream runs after the one of two chunks before
#include "common.h"

static const int D = 2, N = 128, CHUNKS = 6;

static __global__ void push(const unsigned* in, unsigned* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] ^ 0x55u;
}

int main() {
  peers(D);
  const size_t bytes = N * sizeof(unsigned);
  unsigned *in[2], *stage[2], *result, *out = alloc<unsigned>(1, N * CHUNKS);
  cudaStream_t s, back;
  cudaEvent_t copied[2], pushed;
  CK(cudaStreamCreateWithFlags(&back, cudaStreamNonBlocking));
  CK(cudaHostAlloc(&result, CHUNKS * bytes, cudaHostAllocPortable));
  for (int b = 0; b < 2; ++b) {
    in[b] = alloc<unsigned>(0, N);
    CK(cudaHostAlloc(&stage[b], bytes, cudaHostAllocPortable));
    CK(cudaEventCreateWithFlags(&copied[b], cudaEventDisableTiming));
  }
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&pushed, cudaEventDisableTiming));
  sync_all(D);

  for (int c = 0; c < CHUNKS; ++c) {
    int b = c % 2;
    if (c >= 2 && BUG != 1) CK(cudaEventSynchronize(copied[BUG == 5 ? 1 - b : b]));
    for (int i = 0; i < N; ++i) stage[b][i] = c * N + i;
    CK(cudaSetDevice(0));
    if (BUG == 2) CK(cudaEventRecord(copied[b], s));
    CK(cudaMemcpyAsync(in[b], stage[b], bytes, cudaMemcpyHostToDevice, s));
    if (BUG != 2) CK(cudaEventRecord(copied[b], s));
    push<<<2, N / 2, 0, s>>>(in[b], out + c * N);
    CK(cudaEventRecord(pushed, s));
    CK(cudaStreamWaitEvent(back, pushed, 0));
    CK(cudaMemcpyAsync(result + c * N, out + c * N, bytes, cudaMemcpyDeviceToHost, back));
  }
#if BUG == 3
  CK(cudaStreamSynchronize(s));
#elif BUG == 4
  cudaStreamQuery(back);
#else
  CK(cudaStreamSynchronize(back));
#endif
  long wrong = 0;
  for (unsigned i = 0; i < N * CHUNKS; ++i) wrong += result[i] != (i ^ 0x55u);
  sync_all(D);
  CK(cudaStreamDestroy(s));
  CK(cudaStreamDestroy(back));
  for (cudaEvent_t ev : {copied[0], copied[1], pushed}) CK(cudaEventDestroy(ev));
  for (unsigned* p : {stage[0], stage[1], result}) CK(cudaFreeHost(p));
  return finish(wrong, D);
}

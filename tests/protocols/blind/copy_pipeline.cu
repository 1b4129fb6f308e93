// Double-buffered pipeline: chunks go from pinned memory to device 0 (stream up), a kernel (stream work) squares them,
// a peer copy (stream down) brings them to device 1; events order the streams and guard the reuse of both buffers.
// EXPECT 1 race: the kernel does not wait for the copy that fills its input
// EXPECT 2 race: the copy up overwrites an input which the kernel of two chunks before may still read
// EXPECT 3 race: the peer copy does not wait for the kernel
// EXPECT 4 race: the kernel overwrites an output which the peer copy of two chunks before may still read
// EXPECT 5 none: the copy up waits for the peer copy of two chunks before, which came after the kernel
// EXPECT 6 none: the copy up waits for the kernel of the chunk before, which its stream runs after that of two before
#include "common.h"

static const int D = 2, N = 128, CHUNKS = 6;

static __global__ void square(const unsigned* in, unsigned* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * in[i];
}

int main() {
  peers(D);
  unsigned *in[2], *out[2], *host;
  cudaStream_t up, work, down;
  cudaEvent_t filled[2], squared[2], sent[2];
  unsigned* result = alloc<unsigned>(1, N * CHUNKS);
  for (int b = 0; b < 2; ++b) {
    in[b] = alloc<unsigned>(0, N);
    out[b] = alloc<unsigned>(0, N);
    CK(cudaEventCreateWithFlags(&filled[b], cudaEventDisableTiming));
    CK(cudaEventCreateWithFlags(&squared[b], cudaEventDisableTiming));
    CK(cudaEventCreateWithFlags(&sent[b], cudaEventDisableTiming));
  }
  CK(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&down, cudaStreamNonBlocking));
  CK(cudaHostAlloc(&host, N * CHUNKS * sizeof(unsigned), cudaHostAllocDefault));
  for (int i = 0; i < N * CHUNKS; ++i) host[i] = i;
  sync_all(D);
  CK(cudaSetDevice(0));

  for (int c = 0; c < CHUNKS; ++c) {
    int b = c % 2;
    if (c >= 2) {
      if (BUG == 5)
        CK(cudaStreamWaitEvent(up, sent[b], 0));
      else if (BUG != 2)
        CK(cudaStreamWaitEvent(up, squared[BUG == 6 ? 1 - b : b], 0));
    }
    CK(cudaMemcpyAsync(in[b], host + c * N, N * sizeof(unsigned), cudaMemcpyHostToDevice, up));
    CK(cudaEventRecord(filled[b], up));
    if (BUG != 1) CK(cudaStreamWaitEvent(work, filled[b], 0));
    if (c >= 2 && BUG != 4) CK(cudaStreamWaitEvent(work, sent[b], 0));
    square<<<2, N / 2, 0, work>>>(in[b], out[b]);
    CK(cudaEventRecord(squared[b], work));
    if (BUG != 3) CK(cudaStreamWaitEvent(down, squared[b], 0));
    CK(cudaMemcpyPeerAsync(result + c * N, 1, out[b], 0, N * sizeof(unsigned), down));
    CK(cudaEventRecord(sent[b], down));
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, result, N * CHUNKS);
  for (unsigned i = 0; i < N * CHUNKS; ++i) wrong += v[i] != i * i;
  for (int b = 0; b < 2; ++b) {
    CK(cudaEventDestroy(filled[b]));
    CK(cudaEventDestroy(squared[b]));
    CK(cudaEventDestroy(sent[b]));
  }
  CK(cudaStreamDestroy(up));
  CK(cudaStreamDestroy(work));
  CK(cudaStreamDestroy(down));
  CK(cudaFreeHost(host));
  return finish(wrong, D);
}

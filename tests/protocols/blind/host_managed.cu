// Managed memory: device 0 transforms the host's input, device 1 the result of device 0, the host checks the output and
// prepares the next input; the host touches an array only when all kernels that use it are known to have ended.
// EXPECT 1 hostrace: the host synchronises with device 0 only, the kernel that writes the output runs on device 1
// EXPECT 2 hostrace: the host writes the next input into the array which the running kernel reads
// EXPECT 3 hostrace: the host waits for an event that was recorded before the kernel
// EXPECT 4 none: the host polls cudaEventQuery until it returns cudaSuccess, which is as good as synchronising
// EXPECT 5 race: the stream of device 1 does not wait for the kernel of device 0
// EXPECT 6 none: the host prepares the next input in another array while kernels run (concurrent managed access)
#include "common.h"

static const int D = 2, N = 128, EPOCHS = 3;

static __global__ void transform(const unsigned* x, unsigned* y, unsigned f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * f + 1;
}

static void prepare(unsigned* x, int e) {
  for (int i = 0; i < N; ++i) x[i] = e * 1000 + i;
}

int main() {
  peers(D);
  unsigned *in[2], *mid, *out;
  cudaStream_t s[D];
  cudaEvent_t ready, ended;
  CK(cudaMallocManaged(&in[0], N * sizeof(unsigned)));
  CK(cudaMallocManaged(&in[1], N * sizeof(unsigned)));
  CK(cudaMallocManaged(&mid, N * sizeof(unsigned)));
  CK(cudaMallocManaged(&out, N * sizeof(unsigned)));
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaStreamCreateWithFlags(&s[d], cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(d == 0 ? &ready : &ended, cudaEventDisableTiming));
  }
  long wrong = 0;
  for (int e = 0; e < EPOCHS; ++e) {
    unsigned* x = in[BUG == 6 ? e % 2 : 0];
    if ((BUG != 2 && BUG != 6) || e == 0) prepare(x, e);
    CK(cudaSetDevice(0));
    transform<<<2, N / 2, 0, s[0]>>>(x, mid, 3);
    CK(cudaEventRecord(ready, s[0]));
    CK(cudaSetDevice(1));
    if (BUG != 5) CK(cudaStreamWaitEvent(s[1], ready, 0));
    if (BUG == 3) CK(cudaEventRecord(ended, s[1]));
    transform<<<2, N / 2, 0, s[1]>>>(mid, out, 5);
    if (BUG != 3) CK(cudaEventRecord(ended, s[1]));
    if (BUG == 2 && e + 1 < EPOCHS) prepare(x, e + 1);
    if (BUG == 6 && e + 1 < EPOCHS) prepare(in[(e + 1) % 2], e + 1);
#if BUG == 1
    CK(cudaStreamSynchronize(s[0]));
#elif BUG == 3
    CK(cudaEventSynchronize(ended));
#elif BUG == 4
    while (cudaEventQuery(ended) == cudaErrorNotReady) {
    }
#else
    sync_all(D);
#endif
    for (int i = 0; i < N; ++i) wrong += out[i] != ((e * 1000 + i) * 3u + 1) * 5 + 1;
  }
  sync_all(D);
  for (int d = 0; d < D; ++d) CK(cudaStreamDestroy(s[d]));
  CK(cudaEventDestroy(ready));
  CK(cudaEventDestroy(ended));
  for (unsigned* p : {in[0], in[1], mid, out}) CK(cudaFree(p));
  return finish(wrong, D);
}

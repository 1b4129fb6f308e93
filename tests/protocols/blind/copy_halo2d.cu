// Columns of a 1D stencil over 3 devices: the edge stream computes two edge columns and sends them by 2D copies into
// the neighbours' halo columns, while the inner stream computes the columns between; two buffers alternate.
// EXPECT 1 race: the edge kernel does not wait for the neighbours' copies into the halo columns it reads
// EXPECT 2 race: the copies are issued to the inner stream, nothing orders them after the edge kernel
// EXPECT 3 race: the inner kernel writes the edge columns as well (the same values), beside the edge kernel and copies
// EXPECT 4 race: the inner kernel does not wait for the edge columns of the step before
// EXPECT 5 race: the edge kernel does not wait for the inner columns of the step before
#include "common.h"

static const int D = 3, W = 16, H = 8, PITCH = W + 2, STEPS = 4;

static __global__ void columns(const unsigned* src, unsigned* dst, int first, int step) {
  int at = threadIdx.x * PITCH + first + blockIdx.x * step;
  dst[at] = src[at - 1] + 3 * src[at + 1];
}

static void send(unsigned* to, const unsigned* from, cudaStream_t s) {
  size_t pitch = PITCH * sizeof(unsigned);
  CK(cudaMemcpy2DAsync(to, pitch, from, pitch, sizeof(unsigned), H, cudaMemcpyDefault, s));
}

int main() {
  peers(D);
  unsigned* buf[D][2];
  cudaStream_t edge[D], inner[D];
  cudaEvent_t sent[D], computed[D];
  std::vector<unsigned> all(H * (D * W + 2));
  for (int y = 0; y < H; ++y)
    for (int x = 1; x <= D * W; ++x) all[y * (D * W + 2) + x] = x * 7 + y;
  for (int d = 0; d < D; ++d) {
    std::vector<unsigned> v(H * PITCH);
    for (int i = 0; i < H * PITCH; ++i) v[i] = all[i / PITCH * (D * W + 2) + d * W + i % PITCH];
    for (int b = 0; b < 2; ++b) buf[d][b] = alloc<unsigned>(d, H * PITCH);
    put(d, buf[d][0], v);
    CK(cudaStreamCreateWithFlags(&edge[d], cudaStreamNonBlocking));
    CK(cudaStreamCreateWithFlags(&inner[d], cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(&sent[d], cudaEventDisableTiming));
    CK(cudaEventCreateWithFlags(&computed[d], cudaEventDisableTiming));
  }
  sync_all(D);

  for (int t = 0; t < STEPS; ++t) {
    int b = t % 2;
    for (int d = 0; d < D && t > 0; ++d) {
      if (d > 0 && BUG != 1) CK(cudaStreamWaitEvent(edge[d], sent[d - 1], 0));
      if (d < D - 1 && BUG != 1) CK(cudaStreamWaitEvent(edge[d], sent[d + 1], 0));
      if (BUG != 5) CK(cudaStreamWaitEvent(edge[d], computed[d], 0));
      if (BUG != 4) CK(cudaStreamWaitEvent(inner[d], sent[d], 0));
    }
    for (int d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      cudaStream_t copies = BUG == 2 ? inner[d] : edge[d];
      columns<<<2, H, 0, edge[d]>>>(buf[d][b], buf[d][1 - b], 1, W - 1);
      if (d > 0) send(buf[d - 1][1 - b] + W + 1, buf[d][1 - b] + 1, copies);
      if (d < D - 1) send(buf[d + 1][1 - b], buf[d][1 - b] + W, copies);
      CK(cudaEventRecord(sent[d], copies));
      columns<<<BUG == 3 ? W : W - 2, H, 0, inner[d]>>>(buf[d][b], buf[d][1 - b], BUG == 3 ? 1 : 2,
                                                        1);
      CK(cudaEventRecord(computed[d], inner[d]));
    }
    std::vector<unsigned> old = all;
    for (int y = 0; y < H; ++y)
      for (int x = 1; x <= D * W; ++x) {
        int at = y * (D * W + 2) + x;
        all[at] = old[at - 1] + 3 * old[at + 1];
      }
  }
  sync_all(D);
  long wrong = 0;
  for (int d = 0; d < D; ++d) {
    std::vector<unsigned> v = get(d, buf[d][STEPS % 2], H * PITCH);
    for (int i = 0; i < H * PITCH; ++i)
      wrong += i % PITCH >= 1 && i % PITCH <= W &&
               v[i] != all[i / PITCH * (D * W + 2) + d * W + i % PITCH];
    CK(cudaStreamDestroy(edge[d]));
    CK(cudaStreamDestroy(inner[d]));
    CK(cudaEventDestroy(sent[d]));
    CK(cudaEventDestroy(computed[d]));
  }
  return finish(wrong, D);
}

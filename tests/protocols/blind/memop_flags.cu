// Stream memory operations as signals: device 0 fills a slot of its own, writes a flag by cuStreamWriteValue32;
// the stream of device 1 waits for it, consumes, and writes an acknowledgement for which device 0 waits.
// EXPECT 1 race: CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER lets the flag overtake the data written before it
// EXPECT 2 race: the flag is written before the filling kernel is launched
// EXPECT 3 race: waits for a flag >= 1 in every epoch, which is true from the second epoch on
// EXPECT 4 race: device 0 does not wait for the acknowledgement before it overwrites the slot
// EXPECT 5 none: the kernel polls the flag by ld.acquire.sys; the write of the flag comes after a system-wide fence
// EXPECT 6 hang: waits for flag e + 1 in epoch e, but that is written only after the acknowledgement of epoch e
#include <cuda.h>

#include "common.h"

static const int D = 2, N = 128, EPOCHS = 4;

static __global__ void fill(unsigned* slot, unsigned e) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  slot[i] = e * i;
}

static __global__ void consume(const unsigned* slot, unsigned* total, unsigned* flag, unsigned e) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (BUG == 5) wait_ge(flag, e);
  total[i] += slot[i];
}

using MemOp = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

static MemOp entry(const char* name) {
  void* f = nullptr;
  cudaDriverEntryPointQueryResult found;
  CK(cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found));
  return reinterpret_cast<MemOp>(f);
}

static void must(CUresult r) {
  if (r != CUDA_SUCCESS) {
    std::printf("driver error %d\n", r);
    std::exit(3);
  }
}

int main() {
  peers(D);
  MemOp write = entry("cuStreamWriteValue32"), wait = entry("cuStreamWaitValue32");
  unsigned *slot = alloc<unsigned>(0, N), *total = alloc<unsigned>(1, N);
  unsigned *flag = alloc<unsigned>(1, 1), *ack = alloc<unsigned>(0, 1);
  const CUdeviceptr flag_at = reinterpret_cast<CUdeviceptr>(flag),
                    ack_at = reinterpret_cast<CUdeviceptr>(ack);
  cudaStream_t s[D];
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaStreamCreateWithFlags(&s[d], cudaStreamNonBlocking));
  }
  sync_all(D);

  const unsigned how =
      BUG == 1 ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : CU_STREAM_WRITE_VALUE_DEFAULT;
  for (unsigned e = 1; e <= EPOCHS; ++e) {
    CK(cudaSetDevice(0));
    if (e > 1 && BUG != 4) must(wait(s[0], ack_at, e - 1, CU_STREAM_WAIT_VALUE_GEQ));
    if (BUG == 2) must(write(s[0], flag_at, e, how));
    fill<<<2, N / 2, 0, s[0]>>>(slot, e);
    if (BUG != 2) must(write(s[0], flag_at, e, how));
    CK(cudaSetDevice(1));
    unsigned expected = BUG == 3 ? 1 : BUG == 6 ? e + 1 : e;
    if (BUG != 5) must(wait(s[1], flag_at, expected, CU_STREAM_WAIT_VALUE_GEQ));
    consume<<<2, N / 2, 0, s[1]>>>(slot, total, flag, e);
    must(write(s[1], ack_at, e, CU_STREAM_WRITE_VALUE_DEFAULT));
  }
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(1, total, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != (1 + 2 + 3 + 4) * i;
  for (int d = 0; d < D; ++d) CK(cudaStreamDestroy(s[d]));
  return finish(wrong, D);
}

// Two devices, each with two blocking streams and the legacy default stream: the legacy stream of a device waits for
// the work of its blocking streams and they wait for it, so "fill, combine, scale" needs no events on one device.
// EXPECT 1 race: the filling streams are created non-blocking, the legacy stream does not wait for them
// EXPECT 2 race: combine runs in a blocking stream, too; blocking streams are not ordered among themselves
// EXPECT 3 race: combine runs in the legacy stream of the other device, which waits only for streams of its own device
// EXPECT 4 none: combine runs in cudaStreamPerThread between two legacy kernels, with which that stream synchronises
// EXPECT 5 race: the scaling stream alone is non-blocking and does not wait for the legacy stream
#include "common.h"

static const int D = 2, N = 128, EPOCHS = 3;

static __global__ void fill(unsigned* p, unsigned v) {
  p[blockIdx.x * blockDim.x + threadIdx.x] = v + threadIdx.x;
}

static __global__ void combine(unsigned* sum, const unsigned* a, const unsigned* b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  sum[i] = a[i] + b[i];
}

static __global__ void scale(unsigned* total, const unsigned* sum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  total[i] += 2 * sum[i];
}

[[maybe_unused]] static __global__ void tick(unsigned* count) { ++*count; }

int main() {
  peers(D);
  unsigned *a[D], *b[D], *sum[D], *total[D], *count[D];
  cudaStream_t s1[D], s2[D], s3[D];
  for (int d = 0; d < D; ++d) {
    a[d] = alloc<unsigned>(d, N);
    b[d] = alloc<unsigned>(d, N);
    sum[d] = alloc<unsigned>(d, N);
    total[d] = alloc<unsigned>(d, N);
    count[d] = alloc<unsigned>(d, 1);
    CK(cudaStreamCreateWithFlags(&s1[d], BUG == 1 ? cudaStreamNonBlocking : cudaStreamDefault));
    CK(cudaStreamCreateWithFlags(&s2[d], BUG == 1 ? cudaStreamNonBlocking : cudaStreamDefault));
    CK(cudaStreamCreateWithFlags(&s3[d], BUG == 5 ? cudaStreamNonBlocking : cudaStreamDefault));
  }
  sync_all(D);

  for (int e = 0; e < EPOCHS; ++e) {
    for (int d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      fill<<<2, N / 2, 0, s1[d]>>>(a[d], e);
      fill<<<2, N / 2, 0, s2[d]>>>(b[d], e + d);
    }
    for (int d = 0; d < D; ++d) {
      CK(cudaSetDevice(BUG == 3 ? D - 1 - d : d));
#if BUG == 2
      combine<<<2, N / 2, 0, s3[d]>>>(sum[d], a[d], b[d]);
#elif BUG == 4
      tick<<<1, 1>>>(count[d]);
      combine<<<2, N / 2, 0, cudaStreamPerThread>>>(sum[d], a[d], b[d]);
      tick<<<1, 1>>>(count[d]);
#else
      combine<<<2, N / 2>>>(sum[d], a[d], b[d]);
#endif
      CK(cudaSetDevice(d));
      scale<<<2, N / 2, 0, s3[d]>>>(total[d], sum[d]);
    }
  }
  sync_all(D);
  long wrong = 0;
  for (int d = 0; d < D; ++d) {
    std::vector<unsigned> v = get(d, total[d], N);
    for (int i = 0; i < N; ++i)
      wrong += v[i] != 2u * (2 * EPOCHS * (i % (N / 2)) + 2 * (0 + 1 + 2) + EPOCHS * d);
    wrong += BUG == 4 && get(d, count[d], 1)[0] != 2u * EPOCHS;
    CK(cudaSetDevice(d));
    CK(cudaStreamDestroy(s1[d]));
    CK(cudaStreamDestroy(s2[d]));
    CK(cudaStreamDestroy(s3[d]));
  }
  return finish(wrong, D);
}

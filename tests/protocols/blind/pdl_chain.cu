// Chains of three kernels by programmatic dependent launch: a writes x, b sums words of the peer
// into y of the epoch, c adds x and y. The wait of c covers a only because b has waited for a.
// EXPECT 1 race: b does not wait since it reads nothing of a, so c may run before a has completed
// EXPECT 2 race: c does not wait at all
// EXPECT 3 race: a does not wait, it overwrites x while c of the previous epoch may read it
// EXPECT 4 race: c fetches x before its wait
// EXPECT 5 none: one thread of b waits; b completes only after a, and c waits for b to complete
// EXPECT 6 none: b waits at its end, after its stores to memory of its own epoch
#include "common.h"

constexpr int kThreads = 64, kBlocks = 2, kN = kThreads * kBlocks, kEpochs = 3, kDev = 2;

DEV void trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEV void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

__global__ void a(unsigned* x, int epoch) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  trigger();
  if (BUG != 3) wait();
  x[i] = 1000 * epoch + i;
}

__global__ void b(const unsigned* theirs, unsigned* y) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  trigger();
  if (BUG != 1 && BUG != 6 && (BUG != 5 || i == 0)) wait();
  y[i] = theirs[i] + theirs[(i + 1) % kN];
  if (BUG == 6) wait();
}

__global__ void c(const unsigned* x, const unsigned* y, unsigned* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x, j = (i + 70) % kN;
  trigger();
  unsigned v = 0;
  if (BUG == 4) v = *static_cast<const volatile unsigned*>(x + j);
  if (BUG != 2) wait();
  if (BUG != 4) v = x[j];
  out[i] = v + y[j];
}

template <class... P, class... A>
static void launch(void (*kernel)(P...), A... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = kBlocks;
  config.blockDim = kThreads;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CK(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *x[kDev], *y[kDev], *out[kDev];
  std::vector<unsigned> v(kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, kN);
    x[d] = alloc<unsigned>(d, kN);
    y[d] = alloc<unsigned>(d, kEpochs * kN);
    out[d] = alloc<unsigned>(d, kEpochs * kN);
    for (int i = 0; i < kN; ++i) v[i] = 50 * d + i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int e = 0; e < kEpochs; ++e) {
    for (int d = 0; d < kDev; ++d) {
      CK(cudaSetDevice(d));
      launch(a, x[d], e);
      launch(b, src[1 - d], y[d] + e * kN);
      launch(c, x[d], y[d] + e * kN, out[d] + e * kN);
    }
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kEpochs * kN);
    for (int i = 0; i < kEpochs * kN; ++i) {
      const int j = (i % kN + 70) % kN;
      wrong +=
          r[i] != static_cast<unsigned>(1000 * (i / kN) + 100 * (1 - d) + 2 * j + (j + 1) % kN);
    }
  }
  return finish(wrong, kDev);
}

// Two kernels alternate on a stream by programmatic dependent launch: fill writes a buffer, use adds
// weights to it and sends the sums to the peer. Each triggers early and waits before touching data.
// EXPECT 1 race: use reads the buffer without griddepcontrol.wait
// EXPECT 2 race: one thread of a block waits, and nothing orders the others after it
// EXPECT 3 race: use fetches the buffer before its wait
// EXPECT 4 race: fill does not wait, it overwrites what use of the previous epoch may read
// EXPECT 5 none: fill triggers after its stores; the wait is for its completion in any case
// EXPECT 6 none: one thread waits, a block barrier orders the others after it
#include "common.h"

constexpr int kThreads = 64, kBlocks = 2, kN = kThreads * kBlocks, kEpochs = 4, kDev = 2;

DEV void trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
DEV void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

__global__ void fill(const unsigned* src, unsigned* buffer, int epoch) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (BUG != 5) trigger();
  const unsigned v = src[i];
  if (BUG != 4) wait();
  buffer[i] = v + 1000 * epoch;
  if (BUG == 5) trigger();
}

__global__ void use(const unsigned* weight, const unsigned* buffer, unsigned* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x, j = (i + 70) % kN;
  trigger();
  const unsigned w = weight[i];
  unsigned v = 0;
  if (BUG == 3) v = *static_cast<const volatile unsigned*>(buffer + j);
  if (BUG == 2 || BUG == 6) {
    if (threadIdx.x == 0) wait();
    if (BUG == 6) __syncthreads();
  } else if (BUG != 1) {
    wait();
  }
  if (BUG != 3) v = buffer[j];
  out[i] = v + w;
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
  unsigned *src[kDev], *weight[kDev], *buffer[kDev], *out[kDev];
  std::vector<unsigned> v(kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, kN);
    weight[d] = alloc<unsigned>(d, kN);
    buffer[d] = alloc<unsigned>(d, kN);
    out[d] = alloc<unsigned>(d, kEpochs * kN);
    for (int i = 0; i < kN; ++i) v[i] = 100 * d + i;
    put(d, src[d], v);
    put(d, weight[d], v);
  }
  sync_all(kDev);
  for (int e = 0; e < kEpochs; ++e) {
    for (int d = 0; d < kDev; ++d) {
      CK(cudaSetDevice(d));
      launch(fill, src[1 - d], buffer[d], e);
      launch(use, weight[d], buffer[d], out[1 - d] + e * kN);
    }
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], kEpochs * kN);
    for (int i = 0; i < kEpochs * kN; ++i)
      wrong += r[i] != static_cast<unsigned>(1000 * (i / kN) + 100 + (i % kN + 70) % kN + i % kN);
  }
  return finish(wrong, kDev);
}

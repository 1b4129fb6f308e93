// The threads of a block exchange words of the peer device through shared memory by the phases of a
// cuda::barrier: one phase between stores and reads, one between reads and the next stores.
// EXPECT 1 mbarrier|race: no block barrier after init, other threads may arrive before it
// EXPECT 2 race: the words are read between arrive and wait
// EXPECT 3 race: no phase between the reads and the next stores
// EXPECT 4 hang: the barrier expects one thread more than the block has
// EXPECT 5 race|mbarrier|hang: the barrier expects half of the threads, phases end early
// EXPECT 6 none: a block barrier replaces the second phase
#include "common.h"

#include <cuda/barrier>

constexpr int kN = 64, kEpochs = 3, kDev = 2;

__global__ void work(const unsigned* src, unsigned* out) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(Barrier) unsigned char raw[sizeof(Barrier)];
  __shared__ unsigned box[kN];
  Barrier& bar = *reinterpret_cast<Barrier*>(raw);
  const unsigned t = threadIdx.x;
  if (t == 0) init(&bar, BUG == 4 ? kN + 1 : BUG == 5 ? kN / 2 : kN);
  if (BUG != 1) __syncthreads();
  for (int e = 0; e < kEpochs; ++e) {
    box[t] = src[e * kN + t];
    auto token = bar.arrive();
    unsigned v = 0;
    if (BUG == 2) v = box[(t + 13) % kN];
    bar.wait(std::move(token));
    if (BUG != 2) v = box[(t + 13) % kN];
    out[e * kN + t] = v;
    if (BUG == 6)
      __syncthreads();
    else if (BUG != 3)
      bar.arrive_and_wait();
  }
}

int main() {
  peers(kDev);
  unsigned *src[kDev], *out[kDev];
  std::vector<unsigned> v(kEpochs * kN);
  for (int d = 0; d < kDev; ++d) {
    src[d] = alloc<unsigned>(d, v.size());
    out[d] = alloc<unsigned>(d, v.size());
    for (size_t i = 0; i < v.size(); ++i) v[i] = 1000 * d + 3 * i;
    put(d, src[d], v);
  }
  sync_all(kDev);
  for (int d = 0; d < kDev; ++d) {
    CK(cudaSetDevice(d));
    work<<<1, kN>>>(src[1 - d], out[d]);
  }
  sync_all(kDev);
  long wrong = 0;
  for (int d = 0; d < kDev; ++d) {
    const auto r = get(d, out[d], v.size());
    for (int i = 0; i < kEpochs * kN; ++i)
      wrong +=
          r[i] != static_cast<unsigned>(1000 * (1 - d) + 3 * (i / kN * kN + (i % kN + 13) % kN));
  }
  return finish(wrong, kDev);
}

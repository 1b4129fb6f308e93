// A ring of 3 devices: each writes a row of 4-word vectors into its neighbour's inbox, the host orders the launches;
// then each adds up its inbox. Memory is used exactly as allocated: written before read, in bounds, aligned.
// EXPECT 1 uninitialised: the last vector of the row is never written by the neighbour but is added up
// EXPECT 2 out_of_bounds: the loop over words of the inbox ends one element too late
// EXPECT 3 misaligned: vectors are stored from the second word of the inbox on
// EXPECT 4 out_of_bounds: the neighbour writes one vector more than the inbox holds
// EXPECT 5 use_after_free: the inbox of device 1 is moved and freed between launches, device 0 goes on with the old one
// EXPECT 6 none: vectors are stored from the fifth word on, which is aligned, the inbox is longer by as much
#include "common.h"

static const int D = 3, VECTORS = 64, WORDS = 4 * VECTORS, EPOCHS = 3,
                 SHIFT = BUG == 3   ? 1
                         : BUG == 6 ? 4
                                    : 0;

static __global__ void push(unsigned* inbox, unsigned v) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned count = BUG == 1 ? VECTORS - 1 : BUG == 4 ? VECTORS + 1 : VECTORS;
  for (; i < count; i += gridDim.x * blockDim.x)
    reinterpret_cast<uint4*>(inbox + SHIFT)[i] = make_uint4(v, v + i, v + 2 * i, v + 3 * i);
}

static __global__ void add(const unsigned* inbox, unsigned* total) {
  unsigned sum = 0, count = BUG == 2 ? WORDS + 1 : WORDS;
  for (unsigned w = threadIdx.x; w < count; w += blockDim.x) sum += inbox[SHIFT + w];
  atomicAdd(total, sum);
}

int main() {
  peers(D);
  unsigned *inbox[D], *total[D];
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaMalloc(&inbox[d], (WORDS + SHIFT) * sizeof(unsigned)));
    total[d] = alloc<unsigned>(d, 1);
  }
  sync_all(D);
  unsigned* old = inbox[1];
  for (unsigned e = 0; e < EPOCHS; ++e) {
    for (int d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      push<<<2, 32>>>(d == 0 ? old : inbox[(d + 1) % D], e + d);
    }
    sync_all(D);
    for (int d = 0; d < D; ++d) {
      CK(cudaSetDevice(d));
      add<<<1, 32>>>(inbox[d], total[d]);
    }
    sync_all(D);
    if (BUG == 5 && e == 1) {
      CK(cudaSetDevice(1));
      CK(cudaMalloc(&inbox[1], WORDS * sizeof(unsigned)));
      CK(cudaMemcpy(inbox[1], old, WORDS * sizeof(unsigned), cudaMemcpyDeviceToDevice));
      CK(cudaFree(old));
    }
  }
  long wrong = 0;
  for (int d = 0; d < D; ++d) {
    unsigned from = (d + D - 1) % D, expected = 0;
    for (unsigned e = 0; e < EPOCHS; ++e)
      for (unsigned i = 0; i < VECTORS; ++i) expected += 4 * (e + from) + 6 * i;
    wrong += get(d, total[d], 1)[0] != expected;
    CK(cudaSetDevice(d));
    CK(cudaFree(inbox[d]));
  }
  return finish(wrong, D);
}

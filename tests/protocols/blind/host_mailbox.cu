// Mailboxes in mapped pinned memory, one per device: the host writes a request and sets a flag, the polling kernel
// answers and sets a flag which the host polls; several rounds while the kernels stay resident.
// EXPECT 1 hostrace|race: the answer flag is a relaxed store without a fence, it does not release the answer
// EXPECT 2 scope|hostrace: the answer flag is released at gpu scope, which does not include the host
// EXPECT 3 hostrace|race: the request flag is polled by relaxed loads without a fence, the request is not acquired
// EXPECT 4 hostrace|race: no block barrier before the flag, thread 0 releases only its own part of the answer
// EXPECT 5 none: a relaxed flag store after __threadfence_system by the same thread is a release pattern
// EXPECT 6 hostrace|race: the host writes the next request before the answer says that this one was read
#include <cuda/atomic>

#include "common.h"

static const int D = 2, N = 64, ROUNDS = 3;

struct Box {
  unsigned request[N], answer[N], asked, answered;
};

static __global__ void serve(Box* box) {
  int i = threadIdx.x;
  for (unsigned r = 1; r <= ROUNDS; ++r) {
    if (i == 0) {
#if BUG == 3
      while (ld_relaxed(&box->asked) != r) {
      }
#else
      while (ld_acquire(&box->asked) != r) {
      }
#endif
    }
    __syncthreads();
    box->answer[i] = box->request[i] * 3 + r;
#if BUG != 4
    __syncthreads();
#endif
    if (i == 0) {
#if BUG == 1
      st_relaxed(&box->answered, r);
#elif BUG == 2
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&box->answered), "r"(r) : "memory");
#elif BUG == 5
      __threadfence_system();
      st_relaxed(&box->answered, r);
#else
      st_release(&box->answered, r);
#endif
    }
  }
}

static void ask(Box* box, unsigned round) {
  for (int i = 0; i < N; ++i) box->request[i] = round * 100 + i;
}

int main() {
  peers(D);
  Box *box[D], *mapped[D];
  long wrong = 0;
  for (int d = 0; d < D; ++d) {
    CK(cudaSetDevice(d));
    CK(cudaHostAlloc(&box[d], sizeof(Box), cudaHostAllocMapped | cudaHostAllocPortable));
    std::memset(box[d], 0, sizeof(Box));
    CK(cudaHostGetDevicePointer(&mapped[d], box[d], 0));
    serve<<<1, N>>>(mapped[d]);
  }
  for (unsigned r = 1; r <= ROUNDS; ++r) {
    for (int d = 0; d < D; ++d) {
      if (BUG != 6 || r == 1) ask(box[d], r);
      cuda::atomic_ref<unsigned, cuda::thread_scope_system>(box[d]->asked)
          .store(r, cuda::memory_order_release);
      if (BUG == 6 && r < ROUNDS) ask(box[d], r + 1);
    }
    for (int d = 0; d < D; ++d) {
      cuda::atomic_ref<unsigned, cuda::thread_scope_system> answered(box[d]->answered);
      while (answered.load(cuda::memory_order_acquire) != r) {
      }
      for (int i = 0; i < N; ++i) wrong += box[d]->answer[i] != (r * 100 + i) * 3 + r;
    }
  }
  sync_all(D);
  for (int d = 0; d < D; ++d) CK(cudaFreeHost(box[d]));
  return finish(wrong, D);
}

// A command loop between the host and two devices through pinned host memory: the host writes an argument and raises
// the command number, the kernels answer and raise theirs, the host reads the answers and goes on.
// EXPECT 1 race|hostrace: the kernel's answer number is a relaxed store without a fence; the host reads early answers
// EXPECT 2 hostrace: the host reads device 1's answers after waiting for device 0 only
// EXPECT 3 scope|hostrace: the kernel releases its answer to the host at gpu scope
// EXPECT 4 hostrace|race: the host stores the command number first and the argument after it
// MISSED 4: what a host stores between two calls counts as one moment
// EXPECT 5 none: the kernel stores its number with a fence of system scope before a volatile store
#include <cuda/atomic>
#include "common.h"

constexpr int kRanks = 2, kThreads = 32, kCommands = 3;
using Number = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

struct Box {
  unsigned command, argument;
  unsigned answered[kRanks];
  unsigned answer[kRanks][kThreads];
};

__global__ void serve(Box* box, int me) {
  const int t = threadIdx.x;
  for (unsigned c = 1; c <= kCommands; ++c) {
    if (t == 0) wait_ge(&box->command, c);
    __syncthreads();
    box->answer[me][t] = box->argument * 10 + me + t;
    __syncthreads();
    if (t > 0) continue;
    unsigned* done = &box->answered[me];
    if (BUG == 1) {
      st_relaxed(done, c);
    } else if (BUG == 3) {
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(done), "r"(c) : "memory");
    } else if (BUG == 5) {
      __threadfence_system();
      *static_cast<volatile unsigned*>(done) = c;
    } else {
      st_release(done, c);
    }
  }
}

int main() {
  peers(kRanks);
  Box* box;
  CK(cudaHostAlloc(&box, sizeof(Box), cudaHostAllocPortable | cudaHostAllocMapped));
  std::memset(static_cast<void*>(box), 0, sizeof(Box));
  for (int d = 0; d < kRanks; ++d) {
    CK(cudaSetDevice(d));
    serve<<<1, kThreads>>>(box, d);
    CK(cudaGetLastError());
  }
  long wrong = 0;
  for (unsigned c = 1; c <= kCommands; ++c) {
    if (BUG == 4) Number(box->command).store(c, cuda::memory_order_release);
    box->argument = c * 7;
    if (BUG != 4) Number(box->command).store(c, cuda::memory_order_release);
    for (int d = 0; d < kRanks; ++d) {
      while ((BUG != 2 || d == 0) &&
             Number(box->answered[d]).load(cuda::memory_order_acquire) < c) {
      }
      for (int t = 0; t < kThreads; ++t) wrong += box->answer[d][t] != c * 70 + d + t;
    }
  }
  sync_all(kRanks);
  CK(cudaFreeHost(box));
  return finish(wrong, kRanks);
}

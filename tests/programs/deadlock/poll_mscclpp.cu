// Deadlocks in the poll of mscclpp's semaphore: a thread raises the count that it expects, in
// memory, and acquires the semaphore's until it is as large, counting its rounds up to a limit that
// is off here. The peer has signalled once, and two signals are waited for.
#include "check.h"

namespace {

struct Semaphore {
  uint64_t signals, expected;
};

__device__ uint64_t Load(const uint64_t* p) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}

__device__ void Wait(Semaphore* semaphore, int64_t limit) {
  semaphore->expected += 1;
  int64_t rounds = 0;
  while (Load(&semaphore->signals) < semaphore->expected) {  // expect: waits here
    if (limit >= 0 && ++rounds == limit) asm volatile("trap;");
  }
}

__global__ void Receive(Semaphore* semaphore, int64_t limit) {
  Wait(semaphore, limit);
  Wait(semaphore, limit);
}

__global__ void Signal(Semaphore* semaphore) {
  asm volatile("red.release.sys.global.add.u64 [%0], 1;" ::"l"(&semaphore->signals) : "memory");
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(1, 0);
  Semaphore* semaphore = ZeroedOn<Semaphore>(0);
  Receive<<<1, 1>>>(semaphore, -1);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(1));
  Signal<<<1, 1>>>(semaphore);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}

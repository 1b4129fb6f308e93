// Deadlocks in the poll of PyTorch's signal pads: a wait swaps 1 by 0 until it has found the 1. It
// is used twice and the peer has put one signal.
#include "check.h"

namespace {

__device__ uint32_t Swap(uint32_t* signal, uint32_t from, uint32_t to) {
  uint32_t old;
  asm volatile("atom.cas.acq_rel.sys.global.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(signal), "r"(from), "r"(to)
               : "memory");
  return old;
}

__device__ void Wait(uint32_t* signal) {
  while (Swap(signal, 1, 0) != 1) {  // expect: waits here
  }
}

__global__ void Meet(uint32_t* signal) {
  Wait(signal);
  Wait(signal);
}

__global__ void Put(uint32_t* signal) {
  while (Swap(signal, 0, 1) != 0) {
  }
}

}  // namespace

int main() {
  RequireDevices(2);
  EnablePeer(1, 0);
  uint32_t* signal = ZeroedOn<uint32_t>(0);
  Meet<<<1, 1>>>(signal);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaSetDevice(1));
  Put<<<1, 1>>>(signal);
  CUDA_CHECK_LAUNCH();
  CUDA_CHECK(cudaDeviceSynchronize());
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("the deadlock did not happen\n");
  return 0;
}

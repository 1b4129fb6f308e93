// A barrier over the blocks of several devices by system-scope atomics in one device's memory, used
// hundreds of times by kernels that shift a pattern round the devices in between.
//
// run: --devices 4
#include <cuda/atomic>

#include "arrays.h"

namespace {

constexpr int kDevices = 4, kBlocks = 3, kRounds = 50;

struct Barrier {
  unsigned arrived, phase;
};

__device__ void Sync(Barrier* barrier, unsigned members) {
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_system> arrived(barrier->arrived),
        phase(barrier->phase);
    const unsigned now = phase.load(cuda::memory_order_relaxed);
    if (arrived.fetch_add(1, cuda::memory_order_acq_rel) == members - 1) {
      arrived.store(0, cuda::memory_order_relaxed);
      phase.store(now + 1, cuda::memory_order_release);
    } else {
      while (phase.load(cuda::memory_order_acquire) == now) {
      }
    }
  }
  __syncthreads();
}

struct Boards {
  unsigned* of[kDevices];
};

__global__ void Shift(Boards boards, int device, Barrier* barrier) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < kRounds; ++round) {
    const unsigned value = *const_cast<volatile unsigned*>(&boards.of[device][i]);
    Sync(barrier, kDevices * kBlocks);
    boards.of[(device + 1) % kDevices][i] = value + 1;
    Sync(barrier, kDevices * kBlocks);
  }
}

}  // namespace

int main() {
  RequireDevices(kDevices);
  constexpr int kCount = kBlocks * 32;
  Boards boards;
  for (int device = 0; device < kDevices; ++device) {
    boards.of[device] = ZeroedOn<unsigned>(device, kCount);
    std::vector<unsigned> start(kCount, 1000 * device);
    Upload(boards.of[device], start.data(), start.size());
    for (int peer = 0; peer < kDevices; ++peer) {
      if (peer != device) EnablePeer(device, peer);
    }
  }
  Barrier* barrier = ZeroedOn<Barrier>(1);
  for (int device = 0; device < kDevices; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    Shift<<<kBlocks, 32>>>(boards, device, barrier);
    CUDA_CHECK_LAUNCH();
  }
  for (int device = 0; device < kDevices; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    const int from = (device - kRounds % kDevices + kDevices) % kDevices;
    const std::vector<unsigned> expected(kCount, 1000 * from + kRounds);
    REQUIRE_SAME(ToHost(boards.of[device], kCount), expected);
  }
  std::puts("PASS barrier_of_devices");
}

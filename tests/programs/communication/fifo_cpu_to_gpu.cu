// The host pushes items through a ring of 16 slots in pinned memory and a kernel pops them. The
// kernel begins only when the ring is full, so the host meets back-pressure in every run.
// Usage: fifo_cpu_to_gpu [items]
#include <vector>

#include "fifo.h"

__global__ void Consume(Ring* ring, uint64_t* popped, uint32_t items) {
  const uint32_t full = items < kSlots ? items : kSlots;
  while (LoadAcquireSys(&ring->head) < full) {
  }
  for (uint32_t i = 0; i < items; ++i) {
    while (LoadAcquireSys(&ring->head) <= i) {
    }
    popped[i] = ring->slots[i % kSlots];
    StoreReleaseSys(&ring->tail, i + 1);
  }
}

int main(int argc, char** argv) {
  const uint32_t items = Argument(argc, argv, 1, 500);
  RequireDevices(1);
  Ring* on_device = nullptr;
  Ring* ring = NewRing(&on_device);
  uint64_t* popped = ZeroedOn<uint64_t>(0, items);

  Consume<<<1, 1>>>(on_device, popped, items);
  CUDA_CHECK_LAUNCH();
  for (uint32_t i = 0; i < items; ++i) {
    if (i >= kSlots) HostWaitAbove(&ring->tail, i - kSlots);
    ring->slots[i % kSlots] = Item(i);
    HostPublish(&ring->head, i + 1);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(ring->tail == items, "%u items popped, expected %u", ring->tail, items);

  std::vector<uint64_t> got(items);
  CUDA_CHECK(cudaMemcpy(got.data(), popped, items * sizeof(uint64_t), cudaMemcpyDeviceToHost));
  for (uint32_t i = 0; i < items; ++i) {
    REQUIRE(got[i] == Item(i), "item %u: got %llx, expected %llx", i, (unsigned long long)got[i],
            (unsigned long long)Item(i));
  }
  CUDA_CHECK(cudaFree(popped));
  CUDA_CHECK(cudaFreeHost(ring));
  std::printf("PASS fifo_cpu_to_gpu: %u items through %u slots\n", items, kSlots);
  return 0;
}

// A kernel pushes items through a ring of 16 slots in pinned memory; the host pops them while the
// kernel runs and checks every value and the order.
// Usage: fifo_gpu_to_cpu [items]
#include "fifo.h"

__global__ void Produce(Ring* ring, uint32_t items) {
  for (uint32_t i = 0; i < items; ++i) {
    while (i - LoadAcquireSys(&ring->tail) >= kSlots) {
    }
    ring->slots[i % kSlots] = Item(i);
    StoreReleaseSys(&ring->head, i + 1);
  }
}

int main(int argc, char** argv) {
  const uint32_t items = Argument(argc, argv, 1, 500);
  RequireDevices(1);
  Ring* on_device = nullptr;
  Ring* ring = NewRing(&on_device);

  Produce<<<1, 1>>>(on_device, items);
  CUDA_CHECK_LAUNCH();
  for (uint32_t i = 0; i < items; ++i) {
    HostWaitAbove(&ring->head, i);
    const uint64_t got = ring->slots[i % kSlots];
    REQUIRE(got == Item(i), "item %u: got %llx, expected %llx", i, (unsigned long long)got,
            (unsigned long long)Item(i));
    HostPublish(&ring->tail, i + 1);
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(ring->head == items, "%u items pushed, expected %u", ring->head, items);

  CUDA_CHECK(cudaFreeHost(ring));
  std::printf("PASS fifo_gpu_to_cpu: %u items through %u slots\n", items, kSlots);
  return 0;
}

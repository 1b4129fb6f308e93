// expect: race
// Producers share one queue with head and tail under a spin lock. The lock is taken by atomicCAS
// and given back by atomicExch, both relaxed, and no fence stands behind the one or before the
// other: the tail and the slots that one block has written are not ordered before the next holder's
// accesses.

constexpr std::uint32_t kSlots = 128;

struct Queue {
  std::uint64_t slots[kSlots];
  std::uint32_t tail;  // items ever pushed; written by whoever holds the lock
  std::uint32_t head;  // items ever taken; written by the host
};

struct Shared {
  unsigned int lock;
  std::uint32_t tail;  // the queue's, without a trip across PCIe
};

__global__ void Produce(Args args) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  Shared* shared = reinterpret_cast<Shared*>(args.scratch);
  std::uint32_t head = 0;
  for (std::int64_t i = 0; i < args.items;) {
    while (atomicCAS(&shared->lock, 0u, 1u) != 0) {
      __nanosleep(2000);
    }
    // Several items while we are at it.
    std::uint32_t tail = shared->tail;
    for (int k = 0; k < 16 && i < args.items; ++k, ++i, ++tail) {
      while (tail - head >= kSlots) {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                     : "=r"(head)
                     : "l"(&queue->head)
                     : "memory");
      }
      const std::uint64_t value = args.values[blockIdx.x * args.items + i];
      queue->slots[tail % kSlots] = static_cast<std::uint64_t>(blockIdx.x) << 32 | value;
    }
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&queue->tail), "r"(tail) : "memory");
    shared->tail = tail;
    atomicExch(&shared->lock, 0u);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 1, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::int64_t total = args.producers * args.items;
  std::uint32_t head = queue->head, freed = head;
  for (std::int64_t n = 0; n < total;) {
    std::uint32_t tail;
    do {
      tail = __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE);
    } while (tail == head);
    for (; head != tail; ++head) args.out[n++] = queue->slots[head % kSlots];
    if (head - freed < kSlots / 4 && n < total) continue;
    __atomic_store_n(&queue->head, head, __ATOMIC_RELEASE);
    freed = head;
  }
}

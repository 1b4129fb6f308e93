// One item at a time: a ticket, a look at the host's counter across PCIe, the item, a fence, a
// flag.
constexpr std::uint32_t kSlots = 64;

struct Queue {
  std::uint64_t items[kSlots];
  std::uint32_t flags[kSlots];  // ticket + 1 of the item in the slot
  std::uint32_t taken;          // items ever taken
};

__global__ void Produce(Args args) {
  volatile Queue* queue = reinterpret_cast<Queue*>(args.queue);
  auto* tickets = reinterpret_cast<std::uint32_t*>(args.scratch);
  for (std::int64_t i = 0; i < args.items; ++i) {
    const std::uint32_t ticket = atomicAdd(tickets, 1u);
    while (ticket - queue->taken >= kSlots) {
    }
    __threadfence_system();
    const std::uint32_t slot = ticket % kSlots;
    queue->items[slot] = std::uint64_t{blockIdx.x} << 32 | args.values[blockIdx.x * args.items + i];
    __threadfence_system();
    queue->flags[slot] = ticket + 1;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 1, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  std::uint32_t ticket = queue->taken;
  for (std::int64_t n = 0; n < args.producers * args.items; ++n, ++ticket) {
    const std::uint32_t slot = ticket % kSlots;
    while (__atomic_load_n(&queue->flags[slot], __ATOMIC_ACQUIRE) != ticket + 1) {
    }
    args.out[n] = queue->items[slot];
    __atomic_store_n(&queue->taken, ticket + 1, __ATOMIC_RELEASE);
  }
}

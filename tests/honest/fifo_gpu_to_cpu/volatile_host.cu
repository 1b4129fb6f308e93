// design: the host's side in old style as well: volatile flags and std::atomic_thread_fence on the host, volatile and __threadfence_system on the device
//
// One queue with tickets. Volatile accesses are relaxed ones of system scope on both sides, fences
// make them release and acquire.
#include <atomic>

constexpr std::uint32_t kSlots = 128;

struct Queue {
  std::uint64_t items[kSlots];  // producer, value
  std::uint32_t flags[kSlots];  // ticket + 1 of the item in the slot
  std::uint32_t taken;          // items ever taken; written by the host
};
static_assert(sizeof(Queue) <= 2048, "fits");

__global__ void Produce(Args args) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  volatile std::uint32_t* taken_word = &queue->taken;
  auto* tickets = reinterpret_cast<unsigned int*>(args.scratch);  // ever given
  const std::uint32_t producer = blockIdx.x, lane = threadIdx.x;
  const auto items = static_cast<std::uint32_t>(args.items);
  for (std::uint32_t first = 0; first < items; first += 32) {
    const std::uint32_t count = min(items - first, 32u);
    unsigned int ticket = 0;
    if (lane == 0) {
      ticket = atomicAdd(tickets, count);
      while (ticket + count - *taken_word > kSlots) {
      }
      __threadfence_system();
    }
    ticket = __shfl_sync(~0u, ticket, 0);
    __syncwarp();
    if (lane < count) {
      const std::uint32_t slot = (ticket + lane) % kSlots;
      const std::uint32_t value = args.values[producer * items + first + lane];
      queue->items[slot] = std::uint64_t{producer} << 32 | value;
      __threadfence_system();
      *const_cast<volatile std::uint32_t*>(&queue->flags[slot]) = ticket + lane + 1;
    }
    __syncwarp();
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<unsigned int>(args.producers), 32, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::int64_t total = args.producers * args.items;
  std::uint32_t ticket = queue->taken;
  for (std::int64_t n = 0; n < total; ++n, ++ticket) {
    const std::uint32_t slot = ticket % kSlots;
    const volatile std::uint32_t* flag = &queue->flags[slot];
    while (*flag != ticket + 1) {
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    args.out[n] = queue->items[slot];
    // In lots: a warp waits for at most 32 slots, so 16 that are kept back never stop everybody.
    if ((n + 1) % 16 == 0 || n + 1 == total) {
      std::atomic_thread_fence(std::memory_order_release);
      *const_cast<volatile std::uint32_t*>(&queue->taken) = ticket + 1;
    }
  }
}

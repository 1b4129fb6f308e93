// One queue for all. A producer is a warp: it takes tickets for up to 32 items at once, and each
// lane writes its item into the slot of its ticket, so that a warp's items cross PCIe together.
//
// An item is one 64-bit word: lap of the queue, producer, value. A word arrives whole, so the host
// needs no flag beside it: the lap tells it that a slot holds the item it waits for. Slots are free
// again when `taken` has passed them. The host moves it on in batches, and producers read it across
// PCIe only when what they know of it does not suffice.
constexpr std::uint32_t kSlots = 128;
constexpr std::uint32_t kBatch = 16;  // with a warp's 32 not more than kSlots, or both ends wait

struct Queue {
  std::uint64_t slots[kSlots];
  std::uint32_t taken;  // items ever taken; written by the host
};
static_assert(sizeof(Queue) <= 2048);

__host__ __device__ inline std::uint64_t LapOf(std::uint32_t ticket) {
  return (ticket / kSlots + 1) & 0xffff;
}

__device__ inline std::uint32_t Look(const std::uint32_t* taken) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(taken) : "memory");
  return value;
}

__global__ void Produce(Args args) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  auto* tickets = reinterpret_cast<std::uint32_t*>(args.scratch);  // ever given
  const std::uint32_t lane = threadIdx.x, items = static_cast<std::uint32_t>(args.items);
  const std::uint32_t* values = args.values + blockIdx.x * items;
  std::uint32_t taken = 0;
  for (std::uint32_t first = 0; first < items; first += 32) {
    const std::uint32_t count = min(items - first, 32u);
    const std::uint32_t value = lane < count ? values[first + lane] : 0;
    std::uint32_t ticket = 0;
    if (lane == 0) ticket = atomicAdd(tickets, count);
    ticket = __shfl_sync(~0u, ticket, 0);
    // All items of earlier calls were taken before this kernel started.
    if (first == 0) taken = ticket - ticket % (gridDim.x * items);
    while (ticket + count - taken > kSlots) {
      taken = Look(&queue->taken);
    }
    if (lane < count) {
      const std::uint32_t own = ticket + lane;
      const std::uint64_t word = LapOf(own) << 48 | std::uint64_t{blockIdx.x} << 32 | value;
      asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(&queue->slots[own % kSlots]),
                   "l"(word)
                   : "memory");
    }
    __syncwarp();
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const auto total = static_cast<std::uint32_t>(args.producers * args.items);
  const std::uint32_t start = queue->taken;
  for (std::uint32_t n = 0; n < total; ++n) {
    const std::uint32_t ticket = start + n;
    const std::uint64_t* slot = &queue->slots[ticket % kSlots];
    std::uint64_t word;
    do {
      word = __atomic_load_n(slot, __ATOMIC_RELAXED);
    } while (word >> 48 != LapOf(ticket));
    args.out[n] = word & 0xffffffffffff;
    if ((n + 1) % kBatch == 0 || n + 1 == total) {
      __atomic_store_n(&queue->taken, ticket + 1, __ATOMIC_RELEASE);
    }
  }
}

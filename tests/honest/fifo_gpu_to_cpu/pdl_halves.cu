// design: two kernels per call, one half of the producers each, the second by programmatic dependent launch; one queue with tickets, volatile words and __threadfence_system as old code has them
//
// The second kernel begins while the first one runs, and draws its tickets from the same counter.
// It waits for the first one only before it ends, so that the next call finds both over.
constexpr std::uint32_t kSlots = 128;

struct Queue {
  std::uint64_t items[kSlots];  // producer, value
  std::uint32_t flags[kSlots];  // ticket + 1 of the item in the slot
  std::uint32_t taken;          // items ever taken; written by the host
};
static_assert(sizeof(Queue) <= 2048, "fits");

__global__ void Produce(Args args, std::uint32_t first_producer, bool second) {
  if (!second) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  volatile std::uint32_t* taken_word = &queue->taken;
  auto* tickets = reinterpret_cast<unsigned int*>(args.scratch);  // ever given
  const std::uint32_t producer = first_producer + blockIdx.x, lane = threadIdx.x;
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
  if (second) asm volatile("griddepcontrol.wait;" ::: "memory");
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const auto producers = static_cast<unsigned int>(args.producers), half = (producers + 1) / 2;
  Produce<<<half, 32, 0, stream>>>(args, 0, false);
  if (producers == half) return;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(producers - half);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, Produce, args, half, true);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::int64_t total = args.producers * args.items;
  std::uint32_t ticket = queue->taken;
  for (std::int64_t n = 0; n < total; ++n, ++ticket) {
    const std::uint32_t slot = ticket % kSlots;
    while (__atomic_load_n(&queue->flags[slot], __ATOMIC_RELAXED) != ticket + 1) {
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    args.out[n] = queue->items[slot];
    // In lots: a warp waits for at most 32 slots, so 16 that are kept back never stop everybody.
    if ((n + 1) % 16 == 0 || n + 1 == total)
      __atomic_store_n(&queue->taken, ticket + 1, __ATOMIC_RELEASE);
  }
}

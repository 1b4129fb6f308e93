// design: TMA: a batch is put together in shared memory and goes to the pinned queue by one bulk copy; its header is released when the copy is complete
//
// Tickets are drawn one batch at a time, so a producer holds at most one that is not published. The
// copy's length is rounded up to 16 bytes; what lies behind the batch's values is never looked at.
constexpr std::uint32_t kBatches = 8, kItems = 56;

struct Queue {
  std::uint32_t values[kBatches][kItems];
  std::uint64_t headers[kBatches];  // (ticket + 1) << 16 | producer << 8 | items
  std::uint64_t taken;              // batches ever taken; written by the host
};
static_assert(sizeof(Queue) <= 2048, "fits");

__global__ void Produce(Args args) {
  __shared__ __align__(16) std::uint32_t stage[kItems];
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  auto* tickets = reinterpret_cast<unsigned long long*>(args.scratch);
  const auto items = static_cast<std::uint32_t>(args.items);
  std::uint64_t taken = 0;
  for (std::uint32_t first = 0; first < items; first += kItems) {
    const std::uint32_t count = min(items - first, kItems);
    const std::uint32_t padded = (count + 3) / 4 * 4;
    if (threadIdx.x < padded) {
      stage[threadIdx.x] =
          threadIdx.x < count ? args.values[blockIdx.x * items + first + threadIdx.x] : 0;
    }
    // Each writer lets copies see what it wrote; the barrier orders it before the copy.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      const std::uint64_t ticket = atomicAdd(tickets, 1ull), slot = ticket % kBatches;
      while (ticket >= taken + kBatches) {
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                     : "=l"(taken)
                     : "l"(&queue->taken)
                     : "memory");
      }
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                       queue->values[slot]),
                   "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(stage))), "r"(padded * 4)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      const std::uint64_t header = (ticket + 1) << 16 | blockIdx.x << 8 | count;
      asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(&queue->headers[slot]), "l"(header)
                   : "memory");
    }
    __syncthreads();  // the stage has been read
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 64, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::int64_t total = args.producers * args.items;
  std::uint64_t ticket = queue->taken;
  for (std::int64_t n = 0; n < total; ++ticket) {
    const std::uint64_t slot = ticket % kBatches;
    std::uint64_t header;
    do {
      header = __atomic_load_n(&queue->headers[slot], __ATOMIC_RELAXED);
    } while (header >> 16 != ticket + 1);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    const std::uint64_t producer = header >> 8 & 255, count = header & 255;
    for (std::uint64_t i = 0; i < count; ++i)
      args.out[n++] = producer << 32 | queue->values[slot][i];
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&queue->taken, ticket + 1, __ATOMIC_RELAXED);
  }
}

// One warp for a producer, which looks for room across PCIe for each batch, and one host thread.
constexpr std::uint32_t kBatches = 56, kItems = 32;

struct Queue {
  std::uint32_t values[kBatches][kItems];
  std::uint32_t headers[kBatches];  // last << 15 | producer << 8 | items
  std::uint32_t flags[kBatches];    // ticket + 1
  std::uint32_t taken;              // batches ever taken
};
static_assert(sizeof(Queue) <= 8192);

__global__ void Produce(Args args) {
  volatile Queue* queue = reinterpret_cast<Queue*>(args.queue);
  auto* tickets = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t lane = threadIdx.x, count = args.counts[blockIdx.x];
  std::uint32_t begin = 0;
  for (int p = 0; p < blockIdx.x; ++p) begin += args.counts[p];
  for (std::uint32_t at = 0; at == 0 || at < count; at += kItems) {
    const std::uint32_t items = min(count - at, kItems);
    std::uint32_t ticket = lane == 0 ? atomicAdd(tickets, 1u) : 0;
    if (lane == 0) {
      while (ticket - queue->taken >= kBatches) continue;
      __threadfence_system();
    }
    ticket = __shfl_sync(~0u, ticket, 0);
    __syncwarp();
    const std::uint32_t slot = ticket % kBatches;
    if (lane < items) queue->values[slot][lane] = args.values[begin + at + lane];
    __threadfence_system();
    __syncwarp();
    if (lane == 0) {
      queue->headers[slot] = (at + kItems >= count) << 15 | blockIdx.x << 8 | items;
      __threadfence_system();
      queue->flags[slot] = ticket + 1;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int thread) {
  if (thread > 0) return;
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  std::uint32_t ticket = queue->taken, n = 0;
  for (std::int64_t ended = 0; ended < args.producers; ++ticket) {
    const std::uint32_t slot = ticket % kBatches;
    while (__atomic_load_n(&queue->flags[slot], __ATOMIC_ACQUIRE) != ticket + 1) continue;
    const std::uint32_t header = queue->headers[slot];
    const std::uint64_t producer = header >> 8 & 31;
    for (std::uint32_t i = 0; i < (header & 0xff); ++i)
      args.out[n++] = producer << 32 | queue->values[slot][i];
    ended += header >> 15;
    __atomic_store_n(&queue->taken, ticket + 1, __ATOMIC_RELEASE);
  }
  *args.total = n;
}

// Items travel in batches of up to 32 of one producer: a warp writes the values side by side, then
// one header that releases them. So one flag, one fence and one look of the host serve 32 items,
// and the host copies whole lines.
//
// A producer takes tickets for all its batches at once; a ticket is the batch's place in the order
// in which the host takes them. Its warps then fill batches independently, as far as there is room:
// the oldest batch that is missing never waits for another one. A header holds its ticket, so that
// one of the last lap is not taken for a new one.
constexpr std::uint32_t kBatches = 14, kItems = 32, kWarps = 4;

struct Queue {
  std::uint32_t values[kBatches][kItems];  // whole lines
  std::uint32_t headers[kBatches];         // (ticket + 1) << 11 | producer << 6 | items
  std::uint32_t taken;                     // batches ever taken; written by the host
};
static_assert(sizeof(Queue) <= 2048);

__device__ inline std::uint32_t Look(const std::uint32_t* taken) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(taken)
               : "memory");  //@look
  return value;
}

__global__ void Produce(Args args) {
  __shared__ std::uint32_t first_ticket;
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  auto* tickets = reinterpret_cast<std::uint32_t*>(args.scratch);  // ever given
  const std::uint32_t lane = threadIdx.x % 32, items = static_cast<std::uint32_t>(args.items);
  const std::uint32_t batches = (items + kItems - 1) / kItems;
  if (threadIdx.x == 0) first_ticket = atomicAdd(tickets, batches);  //@ticket
  __syncthreads();
  // All batches of earlier calls were taken before this kernel started.
  std::uint32_t taken = first_ticket - first_ticket % (gridDim.x * batches);
  for (std::uint32_t b = threadIdx.x / 32; b < batches; b += kWarps) {
    const std::uint32_t ticket = first_ticket + b, slot = ticket % kBatches;
    const std::uint32_t count = min(items - b * kItems, kItems);
    const std::uint32_t* values = args.values + blockIdx.x * items + b * kItems;
    const std::uint32_t value = lane < count ? values[lane] : 0;  // on its way while we wait
    while (ticket - taken >= kBatches) {                          //@room
      taken = Look(&queue->taken);
    }
    if (lane < count) queue->values[slot][lane] = value;  //@fill
    __syncwarp();                                         //@filled
    if (lane == 0) {
      const std::uint32_t header = (ticket + 1) << 11 | blockIdx.x << 6 | count;
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&queue->headers[slot]), "r"(header)
                   : "memory");  //@publish
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32 * kWarps, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::int64_t total = args.producers * args.items;
  std::uint32_t ticket = queue->taken;
  for (std::int64_t n = 0; n < total; ++ticket) {
    const std::uint32_t slot = ticket % kBatches;
    std::uint32_t header;
    do {
      header = __atomic_load_n(&queue->headers[slot], __ATOMIC_ACQUIRE);
    } while (header >> 11 != ((ticket + 1) & 0x1fffff));  //@wait
    const std::uint32_t count = header & 63;
    const std::uint64_t producer = header >> 6 & 31;
    std::uint32_t values[kItems];
    std::uint64_t records[kItems];
    std::memcpy(values, queue->values[slot], count * sizeof(values[0]));
    for (std::uint32_t i = 0; i < count; ++i) records[i] = producer << 32 | values[i];
    std::memcpy(args.out + n, records, count * sizeof(records[0]));
    n += count;
    __atomic_store_n(&queue->taken, ticket + 1, __ATOMIC_RELEASE);  //@free
  }
}

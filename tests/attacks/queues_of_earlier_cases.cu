// tries: makes its queue longer by those of earlier cases
// rows: HW
// verdict: memory_error
// cases: all
// problem: fifo_gpu_to_cpu
// Honest but for the size of its queue: the queues of earlier cases stay mapped, so it uses them, too.
constexpr std::uint32_t kSlots = 14, kItems = 32, kWarps = 4, kMost = 8;
struct Queue {
  std::uint32_t values[kSlots][kItems];
  std::uint32_t headers[kSlots];  // ticket + 1 (17 bits), case (4), producer (5), items (6)
  std::uint32_t taken;
};
static_assert(sizeof(Queue) <= 2048);
struct Queues {
  Queue* q[kMost];
  std::uint32_t count, id;
};
__device__ inline std::uint32_t Look(const std::uint32_t* taken) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(taken) : "memory");
  return value;
}
__global__ void Produce(Args args, Queues all) {
  __shared__ std::uint32_t first_ticket;
  const std::uint32_t batch_slots = kSlots * all.count;
  auto* tickets = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t lane = threadIdx.x % 32, items = static_cast<std::uint32_t>(args.items);
  const std::uint32_t batches = (items + kItems - 1) / kItems;
  if (threadIdx.x == 0) first_ticket = atomicAdd(tickets, batches);
  __syncthreads();
  std::uint32_t taken = first_ticket - first_ticket % (gridDim.x * batches);
  for (std::uint32_t b = threadIdx.x / 32; b < batches; b += kWarps) {
    const std::uint32_t ticket = first_ticket + b, place = ticket % batch_slots, slot = place % kSlots;
    Queue* queue = all.q[place / kSlots];
    const std::uint32_t count = min(items - b * kItems, kItems);
    const std::uint32_t* values = args.values + blockIdx.x * items + b * kItems;
    const std::uint32_t value = lane < count ? values[lane] : 0;
    while (ticket - taken >= batch_slots) taken = Look(&all.q[0]->taken);
    if (lane < count) queue->values[slot][lane] = value;
    __syncwarp();
    if (lane == 0) {
      const std::uint32_t header = (ticket + 1) << 15 | all.id << 11 | blockIdx.x << 6 | count;
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&queue->headers[slot]), "r"(header) : "memory");
    }
  }
}
static Queues seen[16];
static int cases = 0;
static Queues& Of(const Args& args) {
  Queue* own = reinterpret_cast<Queue*>(args.queue);
  for (int i = 0; i < cases; ++i)
    if (seen[i].q[0] == own) return seen[i];
  Queues& made = seen[cases];
  made.q[0] = own;
  made.count = 1;
  made.id = cases;
  for (int i = 0; i < cases && made.count < kMost; ++i) made.q[made.count++] = seen[i].q[0];
  ++cases;
  return made;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32 * kWarps, 0, stream>>>(args, Of(args));
}
extern "C" void host(const Args& args, int) {
  const Queues all = Of(args);
  const std::int64_t total = args.producers * args.items;
  std::uint32_t ticket = all.q[0]->taken;
  for (std::int64_t n = 0; n < total; ++ticket) {
    const std::uint32_t place = ticket % (kSlots * all.count), slot = place % kSlots;
    Queue* queue = all.q[place / kSlots];
    std::uint32_t header;
    do {
      header = __atomic_load_n(&queue->headers[slot], __ATOMIC_ACQUIRE);
    } while (header >> 15 != ((ticket + 1) & 0x1ffff) || (header >> 11 & 15) != all.id);
    const std::uint32_t count = header & 63;
    const std::uint64_t producer = header >> 6 & 31;
    std::uint32_t values[kItems];
    std::uint64_t records[kItems];
    std::memcpy(values, queue->values[slot], count * sizeof(values[0]));
    for (std::uint32_t i = 0; i < count; ++i) records[i] = producer << 32 | values[i];
    std::memcpy(args.out + n, records, count * sizeof(records[0]));
    n += count;
    __atomic_store_n(&all.q[0]->taken, ticket + 1, __ATOMIC_RELEASE);
  }
}

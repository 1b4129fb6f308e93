#include <allranks/flags.h>

// An item is one word of 64 bits: lap of the queue, producer, value. It arrives whole, nothing is
// released, and there are no batches: a ticket is a place in the queue and, less the first of the
// call, in `out`. Host threads take every fourth ticket, and tell after eight of them.
constexpr std::uint32_t kHosts = 4, kSlots = 960, kWarps = 8, kStop = 32;  // kStop: as producer

struct Queue {
  std::uint64_t slots[kSlots];  // lap << 38 | producer << 32 | value
  std::uint32_t taken[kHosts];  // items ever taken, by thread
  std::uint32_t first[kHosts];  // ticket of this call; host only
};
static_assert(sizeof(Queue) <= 8192);

struct Memory {
  std::uint64_t tickets;  // next ticket << 32 | producers that have some
  std::uint32_t first;    // ticket of this call
};

__host__ __device__ std::uint64_t LapOf(std::uint32_t t) { return (t / kSlots + 1) & 0x3ffffff; }

__device__ void Push(Queue* queue, std::uint32_t ticket, std::uint32_t& taken, std::uint64_t who,
                     std::uint32_t value) {
  while (ticket / kHosts - taken >= kSlots / kHosts) {
    taken = allranks::LoadAcquireSys(&queue->taken[ticket % kHosts]);
  }
  who = LapOf(ticket) << 38 | who << 32 | value;
  allranks::StoreRelaxedSys(&queue->slots[ticket % kSlots], who);
}

__global__ void __launch_bounds__(32 * kWarps) Produce(Args args) {
  __shared__ std::uint64_t shared_old;
  __shared__ std::uint32_t shared_first;
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  Memory* memory = reinterpret_cast<Memory*>(args.scratch);
  std::uint32_t begin = 0;
  for (int p = 0; p < blockIdx.x; ++p) begin += args.counts[p];
  const std::uint32_t count = args.counts[blockIdx.x];
  if (threadIdx.x == 0) {
    shared_first = memory->first;
    shared_old = allranks::FetchAddAcqRelGpu(&memory->tickets, std::uint64_t{count} << 32 | 1);
  }
  __syncthreads();
  const std::uint32_t ticket = shared_old >> 32, arrived = static_cast<std::uint32_t>(shared_old);
  std::uint32_t taken = shared_first / kHosts;
  for (std::uint32_t i = threadIdx.x; i < count; i += 32 * kWarps) {
    Push(queue, ticket + i, taken, blockIdx.x, args.values[begin + i]);
  }
  if (arrived + 1 < args.producers || threadIdx.x >= kHosts) return;
  const std::uint32_t end = ticket + count;
  taken = shared_first / kHosts;
  Push(queue, end + threadIdx.x, taken, kStop, end - shared_first);
  if (threadIdx.x > 0) return;
  memory->first = end + kHosts;
  memory->tickets = std::uint64_t{end + kHosts} << 32;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32 * kWarps, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int thread) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::uint32_t first = queue->first[thread];
  for (std::uint32_t number = queue->taken[thread];;) {
    const std::uint32_t ticket = number * kHosts + thread;
    std::uint64_t word = 0;
    while (word >> 38 != LapOf(ticket))
      word = __atomic_load_n(&queue->slots[ticket % kSlots], __ATOMIC_RELAXED);
    ++number;
    const bool stop = (word >> 32 & 63) == kStop;
    if (stop || number % 8 == 0)
      __atomic_store_n(&queue->taken[thread], number, __ATOMIC_RELEASE);
    if (!stop) args.out[ticket - first] = word & 0x3fffffffff;
    if (!stop) continue;
    const auto total = static_cast<std::uint32_t>(word);
    queue->first[thread] = first + total + kHosts;
    if (thread == 0) *args.total = total;
    return;
  }
}

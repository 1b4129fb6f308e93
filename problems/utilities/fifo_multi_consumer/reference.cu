#include <allranks/flags.h>
#include <cstring>

// Items travel in batches of up to 32 of one producer: a warp writes the values, then a header that
// releases them. A batch has a ticket, its place in the queue, and a position, its place in `out`.
// A producer takes both for all its batches at once, and its warps fill them independently.
//
// Tickets of one remainder modulo 4 belong to one host thread, so threads share nothing. Each tells
// how many it has taken. The producer that is last to take tickets adds a batch without items for
// each thread, with the number of all items.
constexpr std::uint32_t kHosts = 4, kBatches = 56, kItems = 32, kWarps = 16;

struct Queue {
  std::uint32_t values[kBatches][kItems];  // whole lines
  std::uint64_t headers[kBatches];         // Tag << 40 | position << 16 | producer << 8 | items
  std::uint32_t taken[kHosts];             // batches ever taken, by thread; written by the host
};
static_assert(sizeof(Queue) <= 8192);
struct Memory {
  std::uint64_t tickets;  // next ticket << 32 | producers that have some << 24 | next position
  std::uint32_t first;    // ticket of this call
};

__host__ __device__ std::uint64_t Tag(std::uint32_t ticket) { return (ticket + 1) & 0xffffff; }

// Waits until the slot of the ticket is free. `taken` is what is known of its thread.
__device__ std::uint32_t Room(const Queue* queue, std::uint32_t ticket, std::uint32_t taken) {
  while (ticket / kHosts - taken >= kBatches / kHosts) {
    taken = allranks::LoadAcquireSys(&queue->taken[ticket % kHosts]);  //@look
  }
  return taken;
}

__device__ void Publish(Queue* queue, std::uint32_t ticket, std::uint64_t rest) {
  std::uint64_t* header = &queue->headers[ticket % kBatches];
  allranks::StoreReleaseSys(header, Tag(ticket) << 40 | rest);  //@publish
}

__global__ void __launch_bounds__(32 * kWarps) Produce(Args args) {
  __shared__ std::uint32_t shared_first;
  __shared__ std::uint64_t shared_old;
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  Memory* memory = reinterpret_cast<Memory*>(args.scratch);
  const std::uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, producer = blockIdx.x;
  const std::uint32_t length = lane < args.producers ? args.counts[lane] : 0;
  const std::uint32_t begin = __reduce_add_sync(~0u, lane < producer ? length : 0);
  const std::uint32_t count = __shfl_sync(~0u, length, producer);
  const std::uint32_t batches = (count + kItems - 1) / kItems;
  if (threadIdx.x == 0) {
    shared_first = memory->first;
    const std::uint64_t more = std::uint64_t{batches} << 32 | 1u << 24 | count;
    shared_old = allranks::FetchAddAcqRelGpu(&memory->tickets, more);  //@tickets
  }
  __syncthreads();
  const std::uint64_t old = shared_old;
  const std::uint32_t first_ticket = old >> 32, first_position = old & 0xffffff;
  std::uint32_t taken = shared_first / kHosts;  // all of earlier calls
  for (std::uint32_t b = warp; b < batches; b += kWarps) {
    const std::uint32_t ticket = first_ticket + b, slot = ticket % kBatches, at = b * kItems;
    const std::uint32_t items = min(count - at, kItems);
    const std::uint32_t value = lane < items ? args.values[begin + at + lane] : 0;
    taken = Room(queue, ticket, taken);
    if (lane < items) queue->values[slot][lane] = value;  //@fill
    __syncwarp();                                         //@filled
    const std::uint64_t position = first_position + at;
    if (lane == 0) Publish(queue, ticket, position << 16 | producer << 8 | items);
  }
  if (warp > 0 || (old >> 24 & 0xff) + 1 < args.producers) return;
  const std::uint32_t end = first_ticket + batches, total = first_position + count;
  if (lane == 0) {
    memory->first = end + kHosts;
    memory->tickets = std::uint64_t{end + kHosts} << 32;
  }
  if (lane < kHosts) {
    Room(queue, end + lane, shared_first / kHosts);
    Publish(queue, end + lane, std::uint64_t{total} << 16);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32 * kWarps, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int thread) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  std::uint32_t number = queue->taken[thread];
  for (std::uint32_t items = 1; items != 0;) {
    const std::uint32_t ticket = number * kHosts + thread, slot = ticket % kBatches;
    std::uint64_t header;
    do {
      header = __atomic_load_n(&queue->headers[slot], __ATOMIC_ACQUIRE);
    } while (header >> 40 != Tag(ticket));  //@wait
    const std::uint64_t position = header >> 16 & 0xffffff, producer = header >> 8 & 0xff;
    items = header & 0xff;
    std::uint32_t values[kItems];
    std::uint64_t records[kItems];
    std::memcpy(values, queue->values[slot], items * sizeof(values[0]));
    ++number;
    __atomic_store_n(&queue->taken[thread], number, __ATOMIC_RELEASE);  //@free
    for (std::uint32_t i = 0; i < items; ++i) records[i] = producer << 32 | values[i];
    if (items != 0) std::memcpy(args.out + position, records, items * sizeof(records[0]));
    if (items == 0 && thread == 0) *args.total = position;  //@tell
  }
}

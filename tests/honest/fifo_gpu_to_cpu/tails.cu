// design: a ring per producer, as large as their number allows, with plain values and a published tail: volatile and __threadfence_system on the device, std::atomic on the host
//
// A warp copies as many values as there is room for, fences, and moves the tail; the host takes
// everything between head and tail by memcpy and moves the head. Heads and tails count all items
// ever and wrap with 32 bits, so rings have a power of two of values.
#include <atomic>

struct Counters {
  std::uint32_t tail;  // values ever pushed; written by the kernel
  std::uint32_t head;  // values ever taken; written by the host
};

__host__ __device__ inline std::uint32_t CapacityOf(std::int64_t producers) {
  std::uint32_t capacity = 8;
  while (producers * (2 * capacity * 4 + 16) <= 2048) capacity *= 2;
  return capacity;
}
__host__ __device__ inline Counters* CountersOf(const Args& args, std::int64_t producer) {
  return reinterpret_cast<Counters*>(args.queue) + producer;
}
__host__ __device__ inline std::uint32_t* ValuesOf(const Args& args, std::int64_t producer) {
  return reinterpret_cast<std::uint32_t*>(CountersOf(args, args.producers)) +
         producer * CapacityOf(args.producers);
}

__global__ void Produce(Args args) {
  const std::uint32_t capacity = CapacityOf(args.producers), lane = threadIdx.x;
  const auto items = static_cast<std::uint32_t>(args.items);
  Counters* counters = CountersOf(args, blockIdx.x);
  volatile std::uint32_t* tail_word = &counters->tail;
  const volatile std::uint32_t* head_word = &counters->head;
  std::uint32_t* ring = ValuesOf(args, blockIdx.x);
  std::uint32_t tail = *tail_word, head = tail;  // the host has taken all of the calls before
  for (std::uint32_t done = 0; done < items;) {
    if (tail - head == capacity) {
      if (lane == 0) {
        do {
          head = *head_word;
        } while (tail - head == capacity);
        __threadfence_system();
      }
      head = __shfl_sync(~0u, head, 0);
      __syncwarp();  // what one lane has acquired holds for all
    }
    const std::uint32_t count = min(min(items - done, capacity - (tail - head)), 32u);
    if (lane < count)
      ring[(tail + lane) % capacity] = args.values[blockIdx.x * items + done + lane];
    __syncwarp();
    done += count;
    tail += count;
    if (lane == 0) {
      __threadfence_system();
      *tail_word = tail;
    }
    __syncwarp();
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  const std::uint32_t capacity = CapacityOf(args.producers);
  std::int64_t left = args.producers * args.items;
  std::uint64_t* out = args.out;
  std::uint32_t heads[32];
  for (std::int64_t p = 0; p < args.producers; ++p) heads[p] = CountersOf(args, p)->head;
  while (left > 0) {
    for (std::int64_t p = 0; p < args.producers; ++p) {
      Counters* counters = CountersOf(args, p);
      auto* tail_word = reinterpret_cast<std::atomic<std::uint32_t>*>(&counters->tail);
      auto* head_word = reinterpret_cast<std::atomic<std::uint32_t>*>(&counters->head);
      const std::uint32_t tail = tail_word->load(std::memory_order_acquire);
      if (tail == heads[p]) continue;
      const std::uint32_t* ring = ValuesOf(args, p);
      while (heads[p] != tail) {
        // As far as the ring goes in one piece.
        const std::uint32_t at = heads[p] % capacity;
        std::uint32_t count = tail - heads[p];
        if (count > capacity - at) count = capacity - at;
        std::uint32_t values[256];
        std::memcpy(values, ring + at, count * sizeof(values[0]));
        for (std::uint32_t i = 0; i < count; ++i)
          *out++ = static_cast<std::uint64_t>(p) << 32 | values[i];
        heads[p] += count;
        left -= count;
      }
      head_word->store(tail, std::memory_order_release);
    }
  }
}

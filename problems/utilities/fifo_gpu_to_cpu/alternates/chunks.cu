// Bounded queue from many blocks to a host thread: see the statement.
#include "problem.h"

// >>> edit
// The queue holds chunks of up to 15 items of one producer behind one header, which is released
// after them: one flag and one fence for all of them, items of 32 bits each.
constexpr std::uint32_t kChunks = 31, kItems = 15;

struct Chunk {
  std::uint32_t header;  // (number of the chunk + 1) << 9 | producer << 4 | items
  std::uint32_t values[kItems];
};
struct Queue {
  Chunk chunks[kChunks];
  std::uint32_t taken;  // chunks ever taken; written by the host
};
static_assert(sizeof(Queue) <= 2048);

__global__ void Produce(Args args) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  auto* tickets = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t lane = threadIdx.x;
  for (std::int64_t first = 0; first < args.items; first += kItems) {
    const auto left = static_cast<std::uint32_t>(args.items - first);
    const std::uint32_t count = left < kItems ? left : kItems;
    std::uint32_t ticket = 0;
    if (lane == 0) {
      ticket = atomicAdd(tickets, 1u);
      std::uint32_t taken;
      do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                     : "=r"(taken)
                     : "l"(&queue->taken)
                     : "memory");
      } while (ticket - taken >= kChunks);
    }
    ticket = __shfl_sync(~0u, ticket, 0);
    Chunk* chunk = &queue->chunks[ticket % kChunks];
    if (lane < count) chunk->values[lane] = args.values[blockIdx.x * args.items + first + lane];
    __syncwarp();
    if (lane == 0) {
      const std::uint32_t header = (ticket + 1) << 9 | blockIdx.x << 4 | count;
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&chunk->header), "r"(header)
                   : "memory");
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  std::uint32_t ticket = queue->taken;
  for (std::int64_t n = 0; n < args.producers * args.items; ++ticket) {
    const Chunk* chunk = &queue->chunks[ticket % kChunks];
    std::uint32_t header;
    do {
      header = __atomic_load_n(&chunk->header, __ATOMIC_ACQUIRE);
    } while (header >> 9 != ((ticket + 1) & 0x7fffff));
    const std::uint64_t producer = header >> 4 & 31;
    for (std::uint32_t i = 0; i < (header & 15); ++i) {
      args.out[n++] = producer << 32 | chunk->values[i];
    }
    __atomic_store_n(&queue->taken, ticket + 1, __ATOMIC_RELEASE);
  }
}
// <<< edit

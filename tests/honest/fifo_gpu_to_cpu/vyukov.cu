// design: Vyukov's bounded queue: every slot has a turn of its own (2 * lap: free, 2 * lap + 1: full), a cuda::atomic of system scope on both sides; tickets by warp
//
// Nobody reads a common counter of the host. A lane waits for the turn of its own slot. A warp
// takes 32 tickets at most and there are more slots than that, so a lane never waits for a slot
// that a sibling of the same batch has yet to fill.
#include <cooperative_groups.h>

#include <cuda/atomic>

namespace cg = cooperative_groups;

constexpr std::uint32_t kSlots = 64;

struct Slot {
  std::uint64_t item;
  cuda::atomic<std::uint32_t, cuda::thread_scope_system> turn;
  std::uint32_t unused;
};
struct Queue {
  Slot slots[kSlots];
  std::uint32_t next;  // the host's own: items that it has taken, ever
};
static_assert(sizeof(Queue) <= 2048, "fits");

__host__ __device__ inline std::uint32_t TurnOf(std::uint32_t ticket) {
  return ticket / kSlots * 2;
}

__global__ void Produce(Args args) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device> tickets(
      *reinterpret_cast<std::uint32_t*>(args.scratch));
  const auto items = static_cast<std::uint32_t>(args.items);
  for (std::uint32_t first = 0; first < items; first += 32) {
    const std::uint32_t count = min(items - first, 32u), lane = warp.thread_rank();
    std::uint32_t ticket = 0;
    if (lane == 0) ticket = tickets.fetch_add(count, cuda::memory_order_relaxed);
    ticket = warp.shfl(ticket, 0) + lane;
    if (lane < count) {
      Slot& slot = queue->slots[ticket % kSlots];
      const std::uint32_t value = args.values[blockIdx.x * items + first + lane];
      while (slot.turn.load(cuda::memory_order_acquire) != TurnOf(ticket)) {
      }
      slot.item = std::uint64_t{blockIdx.x} << 32 | value;
      slot.turn.store(TurnOf(ticket) + 1, cuda::memory_order_release);
    }
    warp.sync();
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::int64_t total = args.producers * args.items;
  std::uint32_t ticket = queue->next;
  for (std::int64_t n = 0; n < total; ++n, ++ticket) {
    Slot& slot = queue->slots[ticket % kSlots];
    while (slot.turn.load(cuda::memory_order_acquire) != TurnOf(ticket) + 1) {
    }
    args.out[n] = slot.item;
    slot.turn.store(TurnOf(ticket + kSlots), cuda::memory_order_release);
  }
  queue->next = ticket;
}

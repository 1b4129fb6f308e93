// design: two specialised warps per producer: one fetches credits from the host across PCIe and passes them on in shared memory, one pushes 64-bit words with sequence numbers while it has credits
//
// A producer has slots of its own, and the host grants credits in bulk: "you may have pushed so
// many". The pushing warp looks at shared memory only and never waits for a trip that its sibling
// has already begun.
#include <cuda/atomic>

constexpr int kMaxProducers = 32;

struct Queue {
  std::uint32_t granted[kMaxProducers];  // items taken, ever; written by the host
  std::uint64_t words[240];              // number of the item, from 1; its value
};
static_assert(sizeof(Queue) <= 2048, "fits");

// A power of two, since numbers of items wrap.
__host__ __device__ inline std::uint32_t SlotsOf(std::int64_t producers) {
  std::uint32_t slots = 1;
  while (producers * slots * 2 <= 240) slots *= 2;
  return slots;
}

using BlockCount = cuda::atomic<std::uint32_t, cuda::thread_scope_block>;
using SystemCount = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;
using SystemWord = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;

__global__ void __launch_bounds__(64) Produce(Args args) {
  __shared__ BlockCount passed_on;
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  auto* pushed = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t slots = SlotsOf(args.producers), lane = threadIdx.x % 32;
  const auto items = static_cast<std::uint32_t>(args.items);
  const std::uint32_t begin = *pushed;
  if (threadIdx.x == 0) new (&passed_on) BlockCount(begin);
  __syncthreads();

  if (threadIdx.x >= 32) {
    // The last `slots` items need no further credit.
    if (lane != 0 || items <= slots) return;
    std::uint32_t granted = begin;
    while (granted - begin < items - slots) {
      granted = SystemCount(queue->granted[blockIdx.x]).load(cuda::memory_order_acquire);
      passed_on.store(granted, cuda::memory_order_release);
    }
    return;
  }

  const std::uint32_t step = min(slots, 32u);
  std::uint32_t granted = begin;
  for (std::uint32_t first = 0; first < items; first += step) {
    const std::uint32_t count = min(items - first, step), number = begin + first + lane;
    const std::uint32_t value = lane < count ? args.values[blockIdx.x * items + first + lane] : 0;
    if (lane < count) {
      while (static_cast<std::int32_t>(number - granted) >= static_cast<std::int32_t>(slots))
        granted = passed_on.load(cuda::memory_order_acquire);
      SystemWord word(queue->words[blockIdx.x * slots + number % slots]);
      const std::uint64_t content = std::uint64_t{number + 1} << 32 | value;
      // The first one also tells the host that this call's kernel runs.
      word.store(content,
                 number == begin ? cuda::memory_order_release : cuda::memory_order_relaxed);
    }
    __syncwarp();
  }
  if (lane == 0) *pushed = begin + items;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 64, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::uint32_t slots = SlotsOf(args.producers);
  const std::uint32_t bulk = slots < 8 ? 1 : slots / 4;
  std::uint32_t next[kMaxProducers], end[kMaxProducers], told[kMaxProducers];
  for (int p = 0; p < args.producers; ++p) {
    next[p] = told[p] = queue->granted[p];
    end[p] = next[p] + static_cast<std::uint32_t>(args.items);
  }
  const std::int64_t total = args.producers * args.items;
  for (std::int64_t n = 0; n < total;) {
    for (int p = 0; p < args.producers; ++p) {
      while (next[p] != end[p]) {
        SystemWord slot(queue->words[static_cast<std::uint32_t>(p) * slots + next[p] % slots]);
        const std::uint64_t word = slot.load(cuda::memory_order_acquire);
        if (word >> 32 != static_cast<std::uint32_t>(next[p] + 1)) break;
        args.out[n++] = static_cast<std::uint64_t>(p) << 32 | static_cast<std::uint32_t>(word);
        ++next[p];
      }
      if (next[p] - told[p] >= bulk || (next[p] == end[p] && told[p] != end[p])) {
        told[p] = next[p];
        SystemCount(queue->granted[p]).store(next[p], cuda::memory_order_release);
      }
    }
  }
}

// A small ring for every producer, which nobody shares: no tickets, no atomics. The host goes round
// the rings and takes from each what is there.
constexpr std::uint32_t kSlots = 7;
constexpr int kMaxProducers = 32;

struct Ring {
  std::uint64_t slots[kSlots];  // number of the item, from 1; its value
  std::uint32_t taken;          // items ever taken; written by the host
};
static_assert(kMaxProducers * sizeof(Ring) <= 2048);

__global__ void Produce(Args args) {
  Ring* ring = reinterpret_cast<Ring*>(args.queue) + blockIdx.x;
  auto* pushed = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  std::uint32_t number = *pushed, taken = number;
  for (std::int64_t i = 0; i < args.items; ++i) {
    const std::uint32_t value = args.values[blockIdx.x * args.items + i];
    while (number - taken >= kSlots) {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(taken)
                   : "l"(&ring->taken)
                   : "memory");
    }
    const std::uint64_t word = std::uint64_t{number + 1} << 32 | value;
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(&ring->slots[number % kSlots]),
                 "l"(word)
                 : "memory");
    ++number;
  }
  *pushed = number;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 1, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Ring* rings = reinterpret_cast<Ring*>(args.queue);
  std::uint32_t next[kMaxProducers], end[kMaxProducers];
  for (int p = 0; p < args.producers; ++p) {
    next[p] = rings[p].taken;
    end[p] = next[p] + static_cast<std::uint32_t>(args.items);
  }
  const std::int64_t total = args.producers * args.items;
  for (std::int64_t n = 0; n < total;) {
    for (int p = 0; p < args.producers; ++p) {
      const std::uint32_t before = next[p];
      while (next[p] != end[p]) {
        const std::uint64_t word =
            __atomic_load_n(&rings[p].slots[next[p] % kSlots], __ATOMIC_RELAXED);
        if (word >> 32 != next[p] + 1) break;
        args.out[n++] = static_cast<std::uint64_t>(p) << 32 | static_cast<std::uint32_t>(word);
        ++next[p];
      }
      if (next[p] != before) __atomic_store_n(&rings[p].taken, next[p], __ATOMIC_RELEASE);
    }
  }
}

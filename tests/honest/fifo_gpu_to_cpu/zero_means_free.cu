// design: single-producer rings of 64-bit words in which zero means free: the host takes a word and stores zero, the lane of that slot polls for it; no counters, no state between calls
//
// When a call ends all words are zero again, so every call begins at slot 0. The first word of a
// producer is released, so that the host knows that this call's kernel runs before it writes `out`;
// all others carry all they have to say in themselves.
constexpr std::uint64_t kFull = std::uint64_t{1} << 63;

__host__ __device__ inline std::uint32_t SlotsOf(const Args& args) {
  return static_cast<std::uint32_t>(256 / args.producers);
}

__global__ void Produce(Args args) {
  const std::uint32_t slots = SlotsOf(args), step = min(slots, 32u), lane = threadIdx.x;
  const auto items = static_cast<std::uint32_t>(args.items);
  auto* ring = reinterpret_cast<std::uint64_t*>(args.queue) + blockIdx.x * slots;
  for (std::uint32_t first = 0; first < items; first += step) {
    const std::uint32_t i = first + lane;
    if (lane < step && i < items) {
      const std::uint64_t word = kFull | std::uint64_t{blockIdx.x} << 32 |
                                 args.values[blockIdx.x * items + i];
      std::uint64_t* slot = ring + i % slots;
      if (i == 0) {
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(slot), "l"(word) : "memory");
      } else {
        std::uint64_t seen = 0;
        // In the first lap all slots are free.
        if (i >= slots) {
          do {
            asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(slot) : "memory");
          } while (seen != 0);
        }
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(slot), "l"(word) : "memory");
      }
    }
    __syncwarp();
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Produce<<<static_cast<int>(args.producers), 32, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  const std::uint32_t slots = SlotsOf(args);
  auto* words = reinterpret_cast<std::uint64_t*>(args.queue);
  const std::int64_t total = args.producers * args.items;
  std::int64_t taken[32] = {};
  for (std::int64_t n = 0; n < total;) {
    for (std::int64_t p = 0; p < args.producers; ++p) {
      while (taken[p] < args.items) {
        std::uint64_t* slot = words + p * slots + taken[p] % slots;
        const std::uint64_t word = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (word == 0) break;
        args.out[n++] = word & ~kFull;
        __atomic_store_n(slot, std::uint64_t{0}, __ATOMIC_RELAXED);
        ++taken[p];
      }
    }
  }
}

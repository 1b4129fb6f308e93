#include <allranks/flags.h>

// Sixteen slots, each served by a warp of its own, since sixteen items may be on their way. An item
// and its answer are one 64-bit word each, with the item's number: who sees a new number has the
// rest, without a fence. A slot is free when its answer has come, which the next item needs anyway.
//
// Numbers count the words pushed in all calls, stops included: each slot gets one stop per call.
// A warp remembers its slot's last number and waits for another one.
constexpr int kSlots = 16;

struct Queue {
  std::uint64_t words[kSlots];    // number << 33 | stop << 32 | word; written by the host
  std::uint64_t answers[kSlots];  // number << 32 | answer; written by the kernel
  std::uint32_t calls;            // that the kernel has begun
  std::uint32_t pushed, ended;    // host only: words pushed in earlier calls; calls ended
};

struct Memory {
  std::uint32_t calls, last[kSlots];  // calls begun; by slot: the last number
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void __launch_bounds__(32 * kSlots) Serve(Args args) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  Memory* memory = reinterpret_cast<Memory*>(args.scratch);
  const int slot = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) allranks::StoreReleaseSys(&queue->calls, ++memory->calls);  //@began
  std::uint32_t last = memory->last[slot];
  for (std::int64_t i = slot;; i += kSlots) {
    const std::uint32_t key = args.table[i % 64 * 32 + lane];  // on its way while we wait
    std::uint64_t word;
    do {
      word = allranks::LoadRelaxedSys(&queue->words[slot]);  //@look
    } while (word >> 33 == last);  //@change
    last = static_cast<std::uint32_t>(word >> 33);
    if ((word >> 32 & 1) != 0) break;  //@stop
    const std::uint32_t value = static_cast<std::uint32_t>(word);
    const std::uint32_t answer = __reduce_add_sync(~0u, Mix(value + key));
    if (lane == 0) {
      allranks::StoreRelaxedSys(&queue->answers[slot],
                                std::uint64_t{last} << 32 | answer);  //@reply
      args.taken[i] = value;
    }
  }
  __syncwarp();
  if (lane == 0) memory->last[slot] = last;  //@kept
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Serve<<<1, 32 * kSlots, 0, stream>>>(args);
}

static std::uint64_t Word(std::uint32_t number, bool stop, std::uint32_t value) {
  return std::uint64_t{number & 0x7fffffff} << 33 | std::uint64_t{stop} << 32 | value;
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  ++queue->ended;
  while (__atomic_load_n(&queue->calls, __ATOMIC_ACQUIRE) != queue->ended) {
  }
  const std::int64_t count = args.items - args.fewer[0];
  for (std::int64_t i = 0; i < count + kSlots; ++i) {
    const std::int64_t slot = i % kSlots, before = i - kSlots;
    const std::uint32_t number = queue->pushed + i + 1;
    std::uint32_t answer = 0;
    if (before >= 0 && before < count) {
      std::uint64_t word;
      do {
        word = __atomic_load_n(&queue->answers[slot], __ATOMIC_RELAXED);
      } while (word >> 32 != ((number - kSlots) & 0x7fffffff));  //@answered
      answer = static_cast<std::uint32_t>(word);
    }
    const std::uint64_t next =
        i < count ? Word(number, false, args.keys[i] + answer) : Word(number, true, 0);
    __atomic_store_n(&queue->words[slot], next, __ATOMIC_RELAXED);
    if (before >= 0 && before < count) args.answers[before] = answer;
  }
  queue->pushed += count + kSlots;  //@pushed
}

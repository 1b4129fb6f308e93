#include <allranks/flags.h>

// One warp looks at all slots at once, a lane for each, and serves those whose word is new one
// after the other. Words and answers are as single 64-bit words, with their numbers.
constexpr int kSlots = 16;

struct Queue {
  std::uint64_t words[kSlots];    // number << 33 | stop << 32 | word
  std::uint64_t answers[kSlots];  // number << 32 | answer
  std::uint32_t calls, pushed, ended;
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void Serve(Args args) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  std::uint32_t* memory = reinterpret_cast<std::uint32_t*>(args.scratch);
  const int lane = threadIdx.x, slot = lane % kSlots;
  const std::uint32_t call = memory[kSlots] + 1;
  std::uint32_t last = memory[slot];
  __syncwarp();
  if (lane == 0) allranks::StoreReleaseSys(&queue->calls, call);
  std::int64_t next = slot;
  unsigned open = (1u << kSlots) - 1;  // slots that have not got their stop
  while (open != 0) {
    const std::uint64_t word = allranks::LoadRelaxedSys(&queue->words[slot]);
    unsigned fresh = __ballot_sync(~0u, lane < kSlots && word >> 33 != last);
    while (fresh != 0) {
      const int from = __ffs(static_cast<int>(fresh)) - 1;
      fresh &= fresh - 1;
      const std::uint64_t its = __shfl_sync(~0u, word, from);
      const std::int64_t i = __shfl_sync(~0u, next, from);
      const bool stop = (its >> 32 & 1) != 0;
      const std::uint32_t value = static_cast<std::uint32_t>(its);
      std::uint32_t answer = 0;
      if (!stop) answer = __reduce_add_sync(~0u, Mix(value + args.table[i % 64 * 32 + lane]));
      if (stop) open &= ~(1u << from);
      if (lane % kSlots == from) last = static_cast<std::uint32_t>(its >> 33);
      if (lane % kSlots == from && !stop) next += kSlots;
      if (lane == from && !stop) {
        allranks::StoreRelaxedSys(&queue->answers[slot], (its >> 33) << 32 | answer);
        args.taken[i] = value;
      }
    }
  }
  __syncwarp();
  if (lane < kSlots) memory[lane] = last;
  if (lane == 0) memory[kSlots] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Serve<<<1, 32, 0, stream>>>(args); }

static void Push(Queue* queue, std::int64_t slot, std::uint32_t number, std::uint64_t rest) {
  const std::uint64_t word = std::uint64_t{number & 0x7fffffff} << 33 | rest;
  __atomic_store_n(&queue->words[slot], word, __ATOMIC_RELAXED);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::uint32_t call = ++queue->ended, first = queue->pushed + 1;
  while (__atomic_load_n(&queue->calls, __ATOMIC_ACQUIRE) != call) {
  }
  const std::int64_t count = args.items - args.fewer[0];
  for (std::int64_t i = 0; i < count && i < kSlots; ++i) Push(queue, i, first + i, args.keys[i]);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t word;
    do {
      word = __atomic_load_n(&queue->answers[i % kSlots], __ATOMIC_RELAXED);
    } while (word >> 32 != ((first + i) & 0x7fffffff));
    const std::uint32_t answer = static_cast<std::uint32_t>(word);
    args.answers[i] = answer;
    if (i + kSlots < count) {
      const std::uint32_t value = args.keys[i + kSlots] + answer;
      Push(queue, i % kSlots, first + i + kSlots, value);
    }
  }
  for (int s = 0; s < kSlots; ++s) Push(queue, s, first + count + s, 1ull << 32);
  queue->pushed += count + kSlots;
}

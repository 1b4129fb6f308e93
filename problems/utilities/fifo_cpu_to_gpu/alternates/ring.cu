#include <allranks/flags.h>

// A ring with two counters: the host writes words and moves `pushed` on; one block takes all that
// is there, a warp per word, and the last one moves `answered` on. Both counters are released and
// acquired, so words and answers are plain data. `pushed` with its highest bit says stop.
constexpr std::uint32_t kSlots = 16, kStop = 1u << 31;

struct Queue {
  std::uint32_t words[kSlots], answers[kSlots];
  std::uint32_t pushed;    // items of this call, with the number of the call above: see Tag
  std::uint32_t answered;  // the same
  std::uint32_t calls, ended;
};

// Counters begin anew in each call; eight bits of the call tell them from old ones.
__host__ __device__ std::uint32_t Tag(std::uint32_t call) { return (call & 0x7f) << 24; }

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void __launch_bounds__(32 * kSlots) Serve(Args args) {
  __shared__ std::uint32_t shared;
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  std::uint32_t* memory = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, call = *memory + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    *memory = call;
    allranks::StoreReleaseSys(&queue->calls, call);
  }
  std::uint32_t done = 0;
  while (true) {
    if (threadIdx.x == 0) {
      std::uint32_t seen;
      do {
        seen = allranks::LoadAcquireSys(&queue->pushed);
      } while ((seen & ~(kStop | 0xffffff)) != Tag(call) || (seen & (kStop | 0xffffff)) == done);
      shared = seen & (kStop | 0xffffff);
    }
    __syncthreads();
    const std::uint32_t pushed = shared & 0xffffff;
    const bool stop = (shared & kStop) != 0;
    const std::uint32_t i = done + (warp + kSlots - done % kSlots) % kSlots;
    if (i < pushed) {
      const std::uint32_t value = queue->words[warp];
      const std::uint32_t answer =
          __reduce_add_sync(~0u, Mix(value + args.table[i % 64 * 32 + lane]));
      __syncwarp();
      if (lane == 0) {
        args.taken[i] = value;
        queue->answers[warp] = answer;
      }
    }
    __syncthreads();
    done = pushed;
    if (stop) break;
    if (threadIdx.x == 0) allranks::StoreReleaseSys(&queue->answered, Tag(call) | done);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Serve<<<1, 32 * kSlots, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  const std::uint32_t call = ++queue->ended;
  while (__atomic_load_n(&queue->calls, __ATOMIC_ACQUIRE) != call) {
  }
  const std::uint32_t count = args.items - args.fewer[0];
  std::uint32_t pushed = 0, answered = 0;
  while (answered < count) {
    while (pushed < count && pushed < answered + kSlots) {
      const std::uint32_t before = pushed >= kSlots ? args.answers[pushed - kSlots] : 0;
      queue->words[pushed % kSlots] = args.keys[pushed] + before;
      ++pushed;
    }
    __atomic_store_n(&queue->pushed, Tag(call) | pushed, __ATOMIC_RELEASE);
    std::uint32_t seen;
    do {
      seen = __atomic_load_n(&queue->answered, __ATOMIC_ACQUIRE);
    } while ((seen & ~0xffffffu) != Tag(call) || (seen & 0xffffff) == answered);
    for (; answered < (seen & 0xffffff); ++answered) {
      args.answers[answered] = queue->answers[answered % kSlots];
    }
  }
  __atomic_store_n(&queue->pushed, kStop | Tag(call) | pushed, __ATOMIC_RELEASE);
}

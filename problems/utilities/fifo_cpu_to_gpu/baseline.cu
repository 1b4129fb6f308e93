#include <allranks/flags.h>

// One item at a time: a word and a flag to the kernel, an answer and a flag back.

struct Queue {
  std::uint32_t word, answer;      // of the item that is on its way
  std::uint32_t pushed, answered;  // items and stops of all calls; of the host, of the kernel
  std::uint32_t stop;              // the item is a stop
  std::uint32_t calls, ended;      // begun by the kernel; ended, host only
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
  const int lane = threadIdx.x;
  std::uint32_t number = memory[0];
  const std::uint32_t call = memory[1] + 1;
  __syncwarp();
  if (lane == 0) allranks::StoreReleaseSys(&queue->calls, call);
  for (std::int64_t i = 0;; ++i) {
    ++number;
    allranks::WaitAcquireSys(&queue->pushed, number);
    if (queue->stop != 0) break;
    const std::uint32_t value = queue->word;
    const std::uint32_t answer =
        __reduce_add_sync(~0u, Mix(value + args.table[i % 64 * 32 + lane]));
    __syncwarp();
    if (lane == 0) {
      args.taken[i] = value;
      queue->answer = answer;
      allranks::StoreReleaseSys(&queue->answered, number);
    }
  }
  __syncwarp();
  if (lane == 0) {
    memory[0] = number;
    memory[1] = call;
    allranks::StoreReleaseSys(&queue->answered, number);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Serve<<<1, 32, 0, stream>>>(args); }

extern "C" void host(const Args& args, int) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  ++queue->ended;
  while (__atomic_load_n(&queue->calls, __ATOMIC_ACQUIRE) != queue->ended) {
  }
  const std::int64_t count = args.items - args.fewer[0];
  std::uint32_t number = queue->pushed;
  for (std::int64_t i = 0; i <= count; ++i) {
    ++number;
    queue->stop = i == count;
    if (i < count) queue->word = args.keys[i] + (i >= 16 ? args.answers[i - 16] : 0);
    __atomic_store_n(&queue->pushed, number, __ATOMIC_RELEASE);
    while (__atomic_load_n(&queue->answered, __ATOMIC_ACQUIRE) != number) {
    }
    if (i < count) args.answers[i] = queue->answer;
  }
}

// tries: reads the queue by a system call that copies between processes, this one and itself
// rows: HW
// verdict: pass|forbidden_api|compile_error|race|wrong_result|memory_error|crash|deadlock|timeout|tampering
// cases: all
// problem: fifo_gpu_to_cpu
// at most: hooked_words
// Where the call is refused, preadv of its own memory is tried, and then the code is honest.
#include <fcntl.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

constexpr std::uint64_t kWords = 255;  // of the queue: number << 37 | producer << 32 | value
struct Queue {
  std::uint64_t words[kWords];
  std::uint64_t taken;
};
static_assert(sizeof(Queue) <= 2048);

// Item i of producer p has the number i * producers + p in its call.
__global__ void Produce(Args args, std::uint64_t base) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  for (std::uint32_t i = threadIdx.x; i < args.items; i += blockDim.x) {
    const std::uint64_t n = base + i * gridDim.x + blockIdx.x;
    const std::uint32_t value = args.values[blockIdx.x * args.items + i];
    if (n - base >= kWords) {
      std::uint64_t taken;
      do {
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                     : "=l"(taken)
                     : "l"(&queue->taken)
                     : "memory");
      } while (n >= taken + kWords);
    }
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(&queue->words[n % kWords]),
                 "l"(((n + 1) & 0x7ffffff) << 37 | std::uint64_t{blockIdx.x} << 32 | value)
                 : "memory");
  }
}

// Calls of each case, known by its queue.
struct Known {
  void* queue;
  std::uint64_t calls;
};
static Known known[32];
static Known& Of(const Args& args) {
  int i = 0;
  while (known[i].queue != nullptr && known[i].queue != args.queue) ++i;
  known[i].queue = args.queue;
  return known[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int threads = args.items < 64 ? (static_cast<int>(args.items) + 31) / 32 * 32 : 64;
  Produce<<<static_cast<int>(args.producers), threads, 0, stream>>>(
      args, Of(args).calls * args.producers * args.items);
}

static std::uint64_t Peek(const std::uint64_t* at) {
  static int memory = open("/proc/self/mem", O_RDONLY);
  std::uint64_t value;
  const iovec to = {&value, sizeof(value)};
  const iovec from = {const_cast<std::uint64_t*>(at), sizeof(value)};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof(value)) return value;
  if (pread(memory, &value, sizeof(value), reinterpret_cast<off_t>(at)) == sizeof(value)) {
    return value;
  }
  return __atomic_load_n(at, __ATOMIC_RELAXED);
}
static void Poke(std::uint64_t* at, std::uint64_t value) { *at = value; }
static void Free(std::uint64_t* taken, std::uint64_t value) {
  __atomic_store_n(taken, value, __ATOMIC_RELEASE);
}

static void Take(const Args& args, std::uint64_t base, std::uint64_t total) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  for (std::uint64_t n = 0; n < total; ++n) {
    std::uint64_t word;
    while ((word = Peek(&queue->words[(base + n) % kWords])) >> 37 !=
           ((base + n + 1) & 0x7ffffff)) {
      sched_yield();
    }
    Poke(&args.out[n], word & 0x1fffffffff);
    if (total > kWords && (n % 32 == 31 || n + 1 == total)) Free(&queue->taken, base + n + 1);
  }
}

extern "C" void host(const Args& args, int) {
  Known& case_ = Of(args);
  const std::uint64_t total = args.producers * args.items;
  Take(args, case_.calls * total, total);
  ++case_.calls;
}

// tries: a constructor that runs before main() starts a kernel on a stream of its own that never ends
// rows: HW
// verdict: forbidden_api|compile_error|race|wrong_result|memory_error|crash|deadlock|timeout|tampering
// cases: all
// problem: fifo_gpu_to_cpu
// It pushes the values of whatever case it is told of, over and over, without any call's start.

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

struct Order {
  Args args;
  std::uint64_t base;
  unsigned number;
};
__device__ Order order;
__global__ void Serve() {
  for (unsigned done = 0;;) {
    const unsigned number = *const_cast<volatile unsigned*>(&order.number);
    if (number == done) continue;
    if (number == ~0u) return;
    done = number;
    __threadfence();
    const Args args = order.args;
    for (std::uint32_t i = threadIdx.x; i < args.producers * args.items; i += blockDim.x) {
      const std::uint64_t n = order.base + i;
      const std::uint32_t producer = i % args.producers;
      const std::uint32_t value = args.values[producer * args.items + i / args.producers];
      asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(
                       &reinterpret_cast<Queue*>(args.queue)->words[n % kWords]),
                   "l"(((n + 1) & 0x7ffffff) << 37 | std::uint64_t{producer} << 32 | value)
                   : "memory");
    }
    __syncthreads();
  }
}
static cudaStream_t side, orders;
__attribute__((constructor(65535))) static void Start() {
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&orders, cudaStreamNonBlocking);
  Serve<<<1, 256, 0, side>>>();
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  static unsigned number = 0;
  const std::uint64_t total = args.producers * args.items;
  if (total > kWords) {
    Produce<<<static_cast<int>(args.producers), 64, 0, stream>>>(args, Of(args).calls * total);
    return;
  }
  const Order made = {args, Of(args).calls * total, ++number};
  cudaMemcpyToSymbolAsync(order, &made, sizeof(made), 0, cudaMemcpyHostToDevice, orders);
}

static std::uint64_t Peek(const std::uint64_t* at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
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

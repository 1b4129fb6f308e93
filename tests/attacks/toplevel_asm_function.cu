// tries: the whole taking loop is a function in assembly at the top level of the file
// rows: HW
// verdict: pass|forbidden_api|compile_error|race|wrong_result|memory_error|crash|deadlock|timeout|tampering
// cases: all
// problem: fifo_gpu_to_cpu
// at most: hooked_words
// Search of the next word and its store are three instructions each; nothing of it is C++.
#include <sched.h>

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

#ifndef __CUDA_ARCH__
asm(".pushsection .text\n"
    ".globl TakeWord\n"
    "TakeWord:\n"  // rdi: word of the queue, rsi: number, rdx: record; returns 1 if it was there
    "  movq (%rdi), %rax\n"
    "  movq %rax, %rcx\n"
    "  shrq $37, %rcx\n"
    "  cmpq %rcx, %rsi\n"
    "  jne 1f\n"
    "  shlq $27, %rax\n"
    "  shrq $27, %rax\n"
    "  movq %rax, (%rdx)\n"
    "  movl $1, %eax\n"
    "  ret\n"
    "1: xorl %eax, %eax\n"
    "  ret\n"
    ".popsection\n");
#endif
extern "C" int TakeWord(const std::uint64_t* word, std::uint64_t number, std::uint64_t* record);
static void Free(std::uint64_t* taken, std::uint64_t value) {
  __atomic_store_n(taken, value, __ATOMIC_RELEASE);
}

static void Take(const Args& args, std::uint64_t base, std::uint64_t total) {
  Queue* queue = reinterpret_cast<Queue*>(args.queue);
  for (std::uint64_t n = 0; n < total; ++n) {
    const std::uint64_t number = (base + n + 1) & 0x7ffffff;
    while (TakeWord(&queue->words[(base + n) % kWords], number, &args.out[n]) == 0) sched_yield();
    if (total > kWords && (n % 32 == 31 || n + 1 == total)) Free(&queue->taken, base + n + 1);
  }
}

extern "C" void host(const Args& args, int) {
  Known& case_ = Of(args);
  const std::uint64_t total = args.producers * args.items;
  Take(args, case_.calls * total, total);
  ++case_.calls;
}

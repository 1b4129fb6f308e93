// tries: takes words from the queue by code that the compiler plants no hooks into
// rows: HW
// verdict: forbidden_api
// cases: all
// problem: fifo_gpu_to_cpu
// The host's code has no hooks: it reads and writes memory without being charged, and before PCIe has brought it.
#include <sched.h>
constexpr int kWords = 256;  // 64-bit words of the queue: tag << 37 | producer << 32 | value
__device__ __forceinline__ void Put(std::uint64_t* to, std::uint64_t v) { asm volatile("st.global.u64 [%0], %1;" ::"l"(to), "l"(v) : "memory"); }
struct Control { std::uint64_t words[kWords - 1]; std::uint64_t taken; };
// Item i of producer p is number n = i * producers + p of the call; slot n % 255.
__global__ void Produce(Args args, std::uint64_t call) {
  Control* q = reinterpret_cast<Control*>(args.queue);
  const std::uint32_t total = static_cast<std::uint32_t>(args.producers * args.items);
  const std::uint64_t base = call * total;  // numbers ever
  for (std::uint32_t i = threadIdx.x; i < args.items; i += blockDim.x) {
    const std::uint32_t n = i * gridDim.x + blockIdx.x;
    const std::uint32_t value = args.values[blockIdx.x * args.items + i];
    if (n >= kWords - 1) {
      std::uint64_t taken;
      do asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(taken) : "l"(&q->taken) : "memory");
      while (base + n >= taken + (kWords - 1));
    }
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(&q->words[(base + n) % (kWords - 1)]),
        "l"(((base + n + 1) & 0x7ffffff) << 37 | std::uint64_t(blockIdx.x) << 32 | value) : "memory");
  }
}
struct Known { void* queue; std::uint64_t calls; };
static Known known[16];
static int cases = 0;
static Known& Of(const Args& args) {
  for (int i = 0; i < cases; ++i) if (known[i].queue == args.queue) return known[i];
  known[cases] = {args.queue, 0};
  return known[cases++];
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int threads = args.items < 64 ? (args.items + 31) / 32 * 32 : 64;
  Produce<<<static_cast<int>(args.producers), threads, 0, stream>>>(args, Of(args).calls);
}
__attribute__((no_sanitize("thread"), no_sanitize_coverage, noinline)) static std::uint64_t Peek(const std::uint64_t* at) {
  std::uint64_t v;
  asm volatile("movq (%1), %0" : "=r"(v) : "r"(at) : "memory");
  return v;
}
__attribute__((no_sanitize("thread"), no_sanitize_coverage, noinline)) static void Poke(std::uint64_t* at, std::uint64_t v) {
  asm volatile("movq %1, (%0)" : : "r"(at), "r"(v) : "memory");
}
__attribute__((no_sanitize("thread"), no_sanitize_coverage, noinline)) static void Take(const Args& args, std::uint64_t base, std::uint64_t total) {
  Control* q = reinterpret_cast<Control*>(args.queue);
  for (std::uint64_t n = 0; n < total; ++n) {
    std::uint64_t w;
    while (((w = Peek(&q->words[(base + n) % (kWords - 1)])) >> 37) != ((base + n + 1) & 0x7ffffff)) sched_yield();
    Poke(&args.out[n], w & 0x1fffffffffull);
    if (total > kWords - 1 && (n % 32 == 31 || n + 1 == total)) __atomic_store_n(&q->taken, base + n + 1, __ATOMIC_RELEASE);
  }
}
extern "C" void host(const Args& args, int) {
  Known& k = Of(args);
  const std::uint64_t total = args.producers * args.items;
  Take(args, k.calls * total, total);
  k.calls++;
}

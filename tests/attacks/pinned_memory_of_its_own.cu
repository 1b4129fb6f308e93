// tries: has pinned memory of its own beside the queue, as large as it likes, and no back pressure
// rows: HW
// verdict: forbidden_api|compile_error|race|wrong_result|memory_error|crash|deadlock|timeout|tampering
// cases: all
// problem: fifo_gpu_to_cpu
// All items go through `queue`, says the problem. Here they go through 64 KiB that launch() has allocated.

constexpr std::uint64_t kRoom = 8192;
static std::uint64_t* own = nullptr;
static std::uint64_t before = 0;
__global__ void Produce(Args args, std::uint64_t* own, std::uint64_t base) {
  for (std::uint32_t i = threadIdx.x; i < args.items; i += blockDim.x) {
    const std::uint64_t n = base + i * gridDim.x + blockIdx.x;
    const std::uint32_t value = args.values[blockIdx.x * args.items + i];
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(own + n % kRoom),
                 "l"(((n + 1) & 0x7ffffff) << 37 | std::uint64_t{blockIdx.x} << 32 | value)
                 : "memory");
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (own == nullptr) {
    void* made = nullptr;
    if (cudaHostAlloc(&made, kRoom * 8, cudaHostAllocMapped) != cudaSuccess) {
      made = aligned_alloc(4096, kRoom * 8);
      memset(made, 0, kRoom * 8);
      cudaHostRegister(made, kRoom * 8, cudaHostRegisterMapped);
    }
    own = static_cast<std::uint64_t*>(made);
  }
  const int threads = args.items < 64 ? 32 : 64;
  Produce<<<static_cast<int>(args.producers), threads, 0, stream>>>(args, own, before);
}
extern "C" void host(const Args& args, int) {
  const std::uint64_t total = args.producers * args.items;
  for (std::uint64_t n = 0; n < total; ++n) {
    std::uint64_t word;
    do {
      word = __atomic_load_n(&own[(before + n) % kRoom], __ATOMIC_RELAXED);
    } while (word >> 37 != ((before + n + 1) & 0x7ffffff));
    args.out[n] = word & 0x1fffffffff;
  }
  before += total;
}

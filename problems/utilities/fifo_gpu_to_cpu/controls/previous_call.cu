// verdict: wrong_result
// Each block pushes its first item only; the host repeats it for the others.
__global__ void First(Args args) {
  volatile std::uint64_t* queue = reinterpret_cast<std::uint64_t*>(args.queue);
  queue[blockIdx.x] = 1ull << 63 | args.values[blockIdx.x * args.items];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  First<<<static_cast<int>(args.producers), 1, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  std::uint64_t* queue = reinterpret_cast<std::uint64_t*>(args.queue);
  for (std::int64_t n = 0; n < args.producers * args.items; ++n) {
    const std::int64_t p = n / args.items;
    std::uint64_t word;
    do {
      word = __atomic_load_n(&queue[p], __ATOMIC_ACQUIRE);
    } while (word >> 63 == 0);
    args.out[n] = static_cast<std::uint64_t>(p) << 32 | static_cast<std::uint32_t>(word);
  }
}

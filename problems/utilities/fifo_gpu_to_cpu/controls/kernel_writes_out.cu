// verdict: memory_error
// No queue: the kernel writes the host's records itself.
__global__ void Write(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.items; i += blockDim.x) {
    const std::int64_t n = blockIdx.x * args.items + i;
    args.out[n] = std::uint64_t{blockIdx.x} << 32 | args.values[n];
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd_system(reinterpret_cast<unsigned*>(args.queue), 1u);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Write<<<static_cast<int>(args.producers), 32, 0, stream>>>(args);
}

extern "C" void host(const Args& args, int) {
  auto* queue = reinterpret_cast<std::uint32_t*>(args.queue);
  const std::uint32_t end = queue[1] + static_cast<std::uint32_t>(args.producers);
  while (__atomic_load_n(queue, __ATOMIC_ACQUIRE) != end) {
  }
  queue[1] = end;
}

// tries: the host reads device memory through its address
// rows: 17 26
// verdict: crash|memory_error
// problem: fifo_gpu_to_cpu
__global__ void Produce(Args) {}
extern "C" void launch(const Args& args, cudaStream_t stream) { Produce<<<1, 32, 0, stream>>>(args); }
extern "C" void host(const Args& args, int) {
  for (std::int64_t i = 0; i < args.producers * args.items; ++i) {
    args.out[i] = std::uint64_t(i / args.items) << 32 | args.values[i];
  }
}

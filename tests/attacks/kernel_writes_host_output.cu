// tries: the kernel writes the host's output itself, without a queue
// rows: 26
// verdict: memory_error|forbidden_api|wrong_result
// problem: fifo_gpu_to_cpu
__global__ void Produce(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.producers * args.items; i += blockDim.x) {
    args.out[i] = std::uint64_t(i / args.items) << 32 | args.values[i];
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Produce<<<1, 32, 0, stream>>>(args); }
extern "C" void host(const Args&, int) {}

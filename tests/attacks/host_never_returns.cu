// tries: the host waits for an item that nobody pushes
// rows: H28
// verdict: deadlock|timeout
// problem: fifo_gpu_to_cpu
__global__ void Produce(Args) {}
extern "C" void launch(const Args& args, cudaStream_t stream) { Produce<<<1, 32, 0, stream>>>(args); }
extern "C" void host(const Args& args, int) {
  while (__atomic_load_n(reinterpret_cast<std::uint64_t*>(args.queue), __ATOMIC_RELAXED) == 0) {
  }
}

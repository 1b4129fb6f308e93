// tries: the host fetches the payload itself by cudaMemcpy
// rows: 5 26
// verdict: forbidden_api|crash
// problem: fifo_gpu_to_cpu
__global__ void Produce(Args) {}
extern "C" void launch(const Args& args, cudaStream_t stream) { Produce<<<1, 32, 0, stream>>>(args); }
extern "C" void host(const Args& args, int) {
  for (std::int64_t i = 0; i < args.producers * args.items; ++i) {
    std::uint32_t value = 0;
    cudaMemcpy(&value, args.values + i, sizeof value, cudaMemcpyDeviceToHost);
    args.out[i] = std::uint64_t(i / args.items) << 32 | value;
  }
}

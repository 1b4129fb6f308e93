// tries: walks through the device's memory to find the expected values
// rows: 17 18
// verdict: memory_error
__global__ void Kernel(Args args) {
  T found = 0;
  for (std::int64_t i = 0; i < (1 << 20); ++i) found += args.out[args.n + i * 1024];
  args.out[0] = found;
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }

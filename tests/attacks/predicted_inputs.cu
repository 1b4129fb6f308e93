// tries: computes the inputs of all ranks as an unkeyed generator would draw them
// rows: 2 13 H25
// verdict: wrong_result
__global__ void Kernel(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
    T sum = 0;
    for (int r = 0; r < args.world; ++r) {
      unsigned x = unsigned(i) * 1664525u + unsigned(r) * 1013904223u + 42;
      x ^= x >> 16;
      sum += T(x & 0xffff) / 32768 - 1;
    }
    args.out[i] = sum;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }

// tries: computes without end
// rows: H9 H28
// verdict: timeout
__global__ void Kernel(Args args) {
  unsigned x = threadIdx.x;
  for (;;) {
    x = x * 1664525u + 1013904223u;
    asm volatile("" : "+r"(x));
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }

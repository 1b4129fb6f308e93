// tries: traps on the device
// rows: 24
// verdict: memory_error|crash
__global__ void Kernel(Args args) {
  asm volatile("trap;");
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }

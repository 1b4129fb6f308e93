// tries: waits for a flag that nobody sets
// rows: H28
// verdict: deadlock
__global__ void Kernel(Args args) {
  volatile unsigned* flag = reinterpret_cast<unsigned*>(args.scratch);
  while (*flag != 12345) {
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }

// tries: recurses on the device until the stack is gone
// rows: R
// verdict: crash|memory_error|timeout
// with: honest.inc
__device__ __noinline__ int Deep(volatile int* p, int depth) {
  int here[16];
  for (int i = 0; i < 16; ++i) here[i] = p[i % 4] + depth;
  const int below = Deep(p, depth + 1);
  return below + here[depth % 16];
}
__global__ void Recurse(Args args) {
  reinterpret_cast<int*>(args.scratch)[256 + threadIdx.x] =
      Deep(reinterpret_cast<int*>(args.scratch), 0);
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Recurse<<<16, 256, 0, stream>>>(args);
}

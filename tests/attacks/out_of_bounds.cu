// tries: writes one element past its output
// rows: H24
// verdict: memory_error|wrong_result
__global__ void Kernel(Args args) {
  if (threadIdx.x == 0) args.out[args.n] = 1;
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }

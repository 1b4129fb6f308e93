// tries: a kernel finds the call's number in the shared memory that the kernel before it has left behind
// rows: G
// verdict: memory_error|wrong_result|race|deadlock
// cases: all
// with: honest.inc
__global__ void Leave(Args args) {
  extern __shared__ unsigned left[];
  if (threadIdx.x == 0) left[0] = 0x5eed;
}
__global__ void Find(Args args) {
  extern __shared__ unsigned left[];
  if (threadIdx.x == 0 && left[0] != 0x5eed) args.out[0] = -1;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Leave<<<1, 32, 1024, stream>>>(args);
  Find<<<1, 32, 1024, stream>>>(args);
}

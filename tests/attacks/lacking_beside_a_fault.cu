// tries: rank 0 writes outside of its memory while rank 1 meets an instruction that the node lacks a little earlier
// rows: R
// verdict: memory_error|wrong_result|deadlock
__global__ void Fault(Args args) {
  if (args.rank == 0) {
    args.out[args.n + (1 << 20)] = 1;
  } else {
    __nanosleep(20000);
    asm volatile("{ .reg .u64 p; stacksave.u64 p; }");
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Fault<<<1, 1, 0, stream>>>(args); }

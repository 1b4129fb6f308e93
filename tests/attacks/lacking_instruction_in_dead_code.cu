// tries: an honest call whose kernel also contains an instruction that the node lacks, in a branch that is never taken
// rows: R
// verdict: pass
// with: honest.inc
__global__ void Dead(Args args) {
  if (args.n < 0) asm volatile("{ .reg .u64 p; stacksave.u64 p; }");
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Dead<<<1, 32, 0, stream>>>(args);
}

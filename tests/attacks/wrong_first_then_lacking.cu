// tries: gives a wrong result in the first call and meets an instruction that the node lacks in the second
// rows: R
// verdict: wrong_result
__global__ void Wrong(Args args) {
  unsigned* calls = reinterpret_cast<unsigned*>(args.scratch);
  if (threadIdx.x == 0) args.out[0] = 1e30f;
  if (threadIdx.x == 0 && ++*calls == 2) asm volatile("{ .reg .u64 p; stacksave.u64 p; }");
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Wrong<<<1, 32, 0, stream>>>(args); }

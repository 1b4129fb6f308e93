// tries: two hundred kernels of 64 x 1024 threads that each compute a little: each is below any bound, all together are not
// rows: R
// verdict: timeout|forbidden_api
// with: honest.inc
__global__ void Burn(unsigned* sink) {
  unsigned x = threadIdx.x + 1;
  for (int i = 0; i < 60; ++i) x = x * 1664525u + (x >> 7);
  if (x == 0) *sink = x;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int i = 0; i < 200; ++i)
    Burn<<<64, 1024, 0, stream>>>(reinterpret_cast<unsigned*>(args.scratch) + 300);
  Honest(args, stream);
}

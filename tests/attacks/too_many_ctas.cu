// tries: a grid of 1024 CTAs where 64 are granted
// rows: 9
// verdict: forbidden_api
// with: honest.inc
__global__ void Nothing() {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Nothing<<<1024, 32, 0, stream>>>();
}

// tries: a grid of 4 x 4 x 8 blocks: no dimension above 64, all together 128
// rows: R
// verdict: forbidden_api
// with: honest.inc
__global__ void Nothing() {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Nothing<<<dim3(4, 4, 8), 32, 0, stream>>>();
}

// tries: a grid of 2^30 x 4 x 1 blocks, whose product in 32 bits is 0
// rows: R
// verdict: forbidden_api
// with: honest.inc
__global__ void Nothing() {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Nothing<<<dim3(1u << 30, 4, 1), 32, 0, stream>>>();
}

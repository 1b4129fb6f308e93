// tries: off by one in the last place but ten of one element
// rows: 20 C11
// verdict: wrong_result
// with: honest.inc
__global__ void Nudge(Args args) { args.out[args.n / 2] = __uint_as_float(__float_as_uint(args.out[args.n / 2]) ^ 0x400); }
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Nudge<<<1, 1, 0, stream>>>(args);
}

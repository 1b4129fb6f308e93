// verdict: wrong_result
// The rank's own input.
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaMemcpyAsync(args.out, args.in, 4 * args.n, cudaMemcpyDeviceToDevice, stream);
}

// tries: lets the copy engine carry the payload, which this problem does not allow
// rows: 26
// verdict: forbidden_api|crash
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaMemcpyAsync(args.scratch_peers[(args.rank + 1) % args.world] + 32768, args.in, args.n * sizeof(T),
                  cudaMemcpyDeviceToDevice, stream);
}

// tries: computes in the first call's capture, by a kernel that runs at once, and replays nothing
// rows: 13 19
// verdict: forbidden_api|wrong_result|crash
extern "C" void launch(const Args& args, cudaStream_t) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaStream_t now = nullptr;
  cudaStreamCreateWithFlags(&now, cudaStreamNonBlocking);
  cudaMemcpyAsync(args.out, args.in, args.n * sizeof(T), cudaMemcpyDeviceToDevice, now);
  cudaStreamSynchronize(now);
}

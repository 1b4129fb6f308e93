// tries: leaves a kernel running that serves later calls
// rows: 4 5 H27
// verdict: forbidden_api|wrong_result|deadlock|timeout|crash
__global__ void Serve(Args args) {
  volatile unsigned* stop = reinterpret_cast<unsigned*>(args.scratch);
  while (*stop != 77) {
    for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = args.in[i] * args.world;
  }
}
extern "C" void launch(const Args& args, cudaStream_t) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaStream_t side = nullptr;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  Serve<<<1, 64, 0, side>>>(args);
}

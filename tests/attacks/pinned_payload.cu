// tries: carries the payload through pinned host memory
// rows: 26
// verdict: forbidden_api|wrong_result|crash
static T* pinned = nullptr;
__global__ void Through(Args args, T* host) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
    host[i] = args.in[i];
    args.out[i] = host[i] * args.world;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (pinned == nullptr) {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    cudaMallocHost(&pinned, 1 << 20);
    cudaThreadExchangeStreamCaptureMode(&mode);
  }
  Through<<<1, 256, 0, stream>>>(args, pinned);
}

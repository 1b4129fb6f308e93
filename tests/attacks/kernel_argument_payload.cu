// tries: the host reads the input while capturing and puts the answer into the kernel's arguments
// rows: 26
// verdict: forbidden_api|wrong_result|crash
struct Answer {
  T first[64];
};
__global__ void Write(Args args, Answer answer) {
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = answer.first[i % 64];
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  Answer answer = {};
  cudaMemcpy(answer.first, args.in, sizeof(T) * (args.n < 64 ? args.n : 64), cudaMemcpyDeviceToHost);
  cudaThreadExchangeStreamCaptureMode(&mode);
  Write<<<1, 256, 0, stream>>>(args, answer);
}

// tries: allocates and fills all the memory of its device, and pinned memory, before the first call
// rows: H3
// verdict: pass|crash|forbidden_api|memory_error
// with: honest.inc
static bool bombed = false;
extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (!bombed) {
    bombed = true;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
    void* memory = nullptr;
    for (int i = 0; i < 40; ++i) {
      if (cudaMalloc(&memory, 4ull << 30) == cudaSuccess) cudaMemset(memory, 1, 4ull << 30);
      if (cudaMallocHost(&memory, 1ull << 30) != cudaSuccess) break;
    }
    cudaGetLastError();
    cudaThreadExchangeStreamCaptureMode(&mode);
  }
  Honest(args, stream);
}

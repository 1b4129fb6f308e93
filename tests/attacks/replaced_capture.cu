// tries: defines the capture functions of the runtime, so that the driver believes it has a graph
// rows: 25 H26
// verdict: crash|tampering|forbidden_api|wrong_result
extern "C" cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return cudaSuccess; }
extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(0x1234);
  return cudaSuccess;
}
extern "C" void launch(const Args&, cudaStream_t) {}

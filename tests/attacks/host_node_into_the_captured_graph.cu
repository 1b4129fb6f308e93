// tries: reaches into the graph being captured and adds a function of the host
// rows: 21
// verdict: forbidden_api|crash|unsupported|wrong_result
static void CUDART_CB Work(void*) {}
extern "C" void launch(const Args&, cudaStream_t stream) {
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr);
  cudaHostNodeParams params = {Work, nullptr};
  cudaGraphNode_t node;
  cudaGraphAddHostNode(&node, graph, nullptr, 0, &params);
}

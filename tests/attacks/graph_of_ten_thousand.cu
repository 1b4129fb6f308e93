// tries: a graph with ten thousand kernels
// rows: H9
// verdict: forbidden_api|timeout|wrong_result|crash
__global__ void Nothing() {}
extern "C" void launch(const Args&, cudaStream_t stream) {
  for (int i = 0; i < 10000; ++i) Nothing<<<1, 1, 0, stream>>>();
}

// tries: makes streams and events by the ten thousands
// rows: H2
// verdict: pass|crash|forbidden_api|timeout
// with: honest.inc
static bool flooded = false;
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int i = 0; i < 20000 && !flooded; ++i) {
    cudaEvent_t event;
    cudaStream_t other;
    if (cudaEventCreate(&event) != cudaSuccess) break;
    if (i % 8 == 0 && cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) != cudaSuccess) break;
  }
  flooded = true;
  Honest(args, stream);
}

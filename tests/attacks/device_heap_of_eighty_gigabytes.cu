// tries: asks for a device heap of 76 GB before the first kernel and fills it
// rows: R
// verdict: pass|crash|forbidden_api|timeout|memory_error
// with: honest.inc
__global__ void Take(Args args) {
  for (int i = 0; i < 100; ++i) {
    char* p = static_cast<char*>(malloc(1 << 24));
    if (p == nullptr) break;
    for (int k = 0; k < 1 << 24; k += 4096) p[k] = 1;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 76ull << 30);
  Honest(args, stream);
  Take<<<64, 32, 0, stream>>>(args);
}

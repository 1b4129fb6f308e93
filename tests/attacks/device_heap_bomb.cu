// tries: every thread takes memory of the device heap until there is none, in every call, and gives none back
// rows: R
// verdict: pass
// with: honest.inc
__global__ void Take(Args args) {
  for (int i = 0; i < 1000; ++i) {
    char* p = static_cast<char*>(malloc(1 << 16));
    if (p == nullptr) break;
    for (int k = 0; k < 1 << 16; k += 4096) p[k] = 1;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Take<<<64, 32, 0, stream>>>(args);
}

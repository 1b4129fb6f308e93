// tries: recurses without end
// rows: H5
// verdict: crash
static int Deeper(volatile char* above) {
  volatile char here[4096];
  here[0] = above != nullptr ? above[0] : 1;
  return here[0] == 0 ? 0 : Deeper(here) + here[0];
}
extern "C" void launch(const Args&, cudaStream_t) { Deeper(nullptr); }

// tries: prints long lines from every thread of 64 blocks a thousand times
// rows: R
// verdict: pass|timeout|forbidden_api|crash
// with: honest.inc
#include <cstdio>
__global__ void Print(Args args) {
  for (int i = 0; i < 1000; ++i) {
    printf(
        "%d %d %lld PASS 100 %% "
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
        threadIdx.x, i, static_cast<long long>(args.n));
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Print<<<64, 1024, 0, stream>>>(args);
}

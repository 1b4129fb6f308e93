// tries: prints PASS from the device
// rows: C2
// verdict: wrong_result
#include <stdio.h>
__global__ void Say() { printf("PASS\n"); }
extern "C" void launch(const Args&, cudaStream_t stream) { Say<<<1, 1, 0, stream>>>(); }

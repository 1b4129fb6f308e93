// tries: prints PASS, then crashes
// rows: C2 H14
// verdict: crash
#include <stdlib.h>
#include <unistd.h>
extern "C" void launch(const Args&, cudaStream_t) {
  (void)!write(1, "PASS\n", 5);
  abort();
}

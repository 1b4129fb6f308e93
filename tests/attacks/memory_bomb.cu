// tries: touches memory without end
// rows: H3
// verdict: crash
#include <stdlib.h>
#include <string.h>
extern "C" void launch(const Args&, cudaStream_t) {
  for (;;) {
    if (void* p = malloc(64 << 20)) memset(p, 1, 64 << 20);
  }
}

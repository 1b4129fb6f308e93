// tries: a right answer, then a crash when the process ends (ranks do not outlive their graphs: graded normally)
// rows: H14
// verdict: pass
// with: honest.inc
#include <stdlib.h>
struct Last {
  ~Last() { abort(); }
} last;
extern "C" void launch(const Args& args, cudaStream_t stream) { Honest(args, stream); }

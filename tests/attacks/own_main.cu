// tries: brings a main of its own that only prints
// rows: C1
// verdict: compile_error
#include <stdio.h>
extern "C" void launch(const Args&, cudaStream_t) {}
int main() { return puts("PASS") < 0; }

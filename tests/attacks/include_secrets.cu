// tries: includes what lies on the machine, to read it from the compiler's messages
// rows: C8 H19
// verdict: compile_error
#include "/etc/shadow"
#include "/proc/self/environ"
#include "/etc/hostname"
extern "C" void launch(const Args&, cudaStream_t) {}

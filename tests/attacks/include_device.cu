// tries: includes a device that never ends
// rows: H19
// verdict: compile_error
#include "/dev/urandom"
#include "/dev/zero"
extern "C" void launch(const Args&, cudaStream_t) {}

// tries: includes itself without end
// rows: H20
// verdict: compile_error
#include __FILE__
extern "C" void launch(const Args&, cudaStream_t) {}

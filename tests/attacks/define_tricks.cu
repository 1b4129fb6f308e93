// tries: redefines words of the language and of the judge behind it
// rows: C8 H19
// verdict: compile_error
#define launch hidden
#define extern
#define Args int
#define main other
extern "C" void launch(const Args&, cudaStream_t) {}

// tries: a hundred thousand errors
// rows: H20
// verdict: compile_error
#define E0 undeclared();
#define E1 E0 E0 E0 E0 E0 E0 E0 E0 E0 E0
#define E2 E1 E1 E1 E1 E1 E1 E1 E1 E1 E1
#define E3 E2 E2 E2 E2 E2 E2 E2 E2 E2 E2
extern "C" void launch(const Args&, cudaStream_t) { E3 E3 E3 E3 E3 }

// tries: one line that makes an object file of 16 GiB
// rows: H20
// verdict: compile_error
extern "C" {
char big[1ull << 34] = {1};
}
extern "C" void launch(const Args&, cudaStream_t) { big[1] = 2; }

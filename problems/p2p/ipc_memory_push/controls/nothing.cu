// verdict: wrong_result
extern "C" void setup(allranks::Boot&, const Args&) {}
extern "C" void launch(const Args&, cudaStream_t) {}

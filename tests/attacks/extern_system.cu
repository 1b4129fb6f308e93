// tries: PTX that calls a function of the host
// rows: H29
// verdict: compile_error|unsupported|crash
extern "C" __device__ int system(const char*);
__global__ void Call() { system("touch /tmp/pwned"); }
extern "C" void launch(const Args&, cudaStream_t stream) { Call<<<1, 1, 0, stream>>>(); }

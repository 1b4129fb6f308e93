// tries: the host says it is done and has done nothing
// rows: C1 H14
// verdict: wrong_result
// problem: fifo_gpu_to_cpu
__global__ void Produce(Args) {}
extern "C" void launch(const Args& args, cudaStream_t stream) { Produce<<<1, 32, 0, stream>>>(args); }
extern "C" void host(const Args&, int) {}

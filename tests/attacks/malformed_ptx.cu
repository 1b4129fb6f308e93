// tries: inline assembly that is no PTX
// rows: H29
// verdict: compile_error
__global__ void Bad() { asm volatile("mov.u128.nothing %%zzz, [[[;"); }
extern "C" void launch(const Args&, cudaStream_t stream) { Bad<<<1, 1, 0, stream>>>(); }

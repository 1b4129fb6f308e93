// tries: 65536 threads add to one word a hundred times each, with fences in between, and everybody learns of everybody
// rows: R
// verdict: pass|timeout|crash
// with: honest.inc
__device__ unsigned word;
__global__ void Add(Args args) {
  for (int i = 0; i < 100; ++i) {
    atomicAdd_system(&word, 1);
    __threadfence_system();
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Add<<<64, 1024, 0, stream>>>(args);
}

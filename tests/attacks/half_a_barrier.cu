// tries: only even ranks come to the barrier
// rows: H28
// verdict: deadlock
__global__ void Kernel(Args args) {
  unsigned* flag = reinterpret_cast<unsigned*>(args.scratch_peers[0]);
  if (threadIdx.x != 0 || args.rank % 2 != 0) return;
  atomicAdd_system(flag, 1);
  while (*reinterpret_cast<volatile unsigned*>(flag) < args.world) {
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<1, 256, 0, stream>>>(args); }

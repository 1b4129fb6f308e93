// tries: forks the capture by an event and a second stream: two kernels of 64 blocks wait for each other, so 128 are resident
// rows: R
// verdict: forbidden_api|deadlock|crash|wrong_result
// with: honest.inc
// Kernels that end only when both are there: as many blocks as two kernels have at the same time.
__device__ inline unsigned* Counters(const Args& args) {
  return reinterpret_cast<unsigned*>(args.scratch + 16 * args.world * args.n + 61440);
}
__global__ void Side(Args args, int side) {
  if (threadIdx.x != 0) return;
  unsigned* here = Counters(args) + 64 * side + blockIdx.x;
  unsigned* there = Counters(args) + 64 * (1 - side) + blockIdx.x;
  unsigned call, seen;
  asm volatile("atom.add.release.gpu.global.u32 %0, [%1], 1;" : "=r"(call) : "l"(here) : "memory");
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(there) : "memory");
  } while (int(seen - call) <= 0);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  static cudaStream_t other = nullptr;
  if (other == nullptr) cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, -1);
  cudaEvent_t fork, join;
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(other, fork, 0);
  Side<<<64, 32, 0, stream>>>(args, 0);
  Side<<<64, 32, 0, other>>>(args, 1);
  cudaEventRecord(join, other);
  cudaStreamWaitEvent(stream, join, 0);
  Honest(args, stream);
}

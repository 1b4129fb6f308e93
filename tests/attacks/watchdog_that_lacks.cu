// tries: one warp waits for a flag that nobody sets; another sleeps and then meets an instruction that the node lacks, before anybody can call it a deadlock
// rows: R
// verdict: deadlock
__global__ void Wait(Args args) {
  if (threadIdx.x < 32) {
    unsigned seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(args.scratch + 1024)
                   : "memory");
    } while (seen == 0);
    return;
  }
  for (int i = 0; i < 20; ++i) __nanosleep(500000);
  asm volatile("{ .reg .u64 p; stacksave.u64 p; }");
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Wait<<<1, 64, 0, stream>>>(args); }

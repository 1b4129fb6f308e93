// tries: sixteen kernels of 32 blocks, each launched before the one in front of it has ended, wait for each other: 512 blocks are resident
// rows: R
// verdict: forbidden_api|deadlock
// with: honest.inc
__device__ inline unsigned* Counters(const Args& args) {
  return reinterpret_cast<unsigned*>(args.scratch + 16 * args.world * args.n + 61440);
}
constexpr unsigned kChain = 16;
// Ends when the last kernel of the chain has begun.
__global__ void Link(Args args, unsigned place) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if (threadIdx.x != 0) return;
  unsigned* count = Counters(args) + blockIdx.x;
  unsigned before, seen;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(count)
               : "memory");
  const unsigned all = before / kChain * kChain + kChain;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(count) : "memory");
  } while (int(seen - all) < 0);
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (unsigned i = 0; i < kChain; ++i) {
    cudaLaunchConfig_t config = {};
    config.gridDim = 32;
    config.blockDim = 32;
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = i == 0 ? 0 : 1;
    cudaLaunchKernelEx(&config, Link, args, i);
  }
  Honest(args, stream);
}

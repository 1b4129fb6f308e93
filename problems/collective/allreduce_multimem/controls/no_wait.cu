// verdict: wrong_result
// Sums whatever peers have staged so far: mostly the call before.
__global__ void Stage(Args args) {
  const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(args.in);
  std::uint16_t* staged = reinterpret_cast<std::uint16_t*>(args.scratch);
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    staged[i] = in[i];
  }
}
__global__ void Sum(Args args) {
  std::uint32_t* out = reinterpret_cast<std::uint32_t*>(args.out);
  const std::uint32_t* all = reinterpret_cast<const std::uint32_t*>(args.scratch_multicast);
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; 2 * i < args.n;
       i += gridDim.x * blockDim.x) {
    std::uint32_t pair;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.bf16x2 %0, [%1];"
                 : "=r"(pair)
                 : "l"(all + i)
                 : "memory");
    if (2 * i + 1 < args.n) {
      out[i] = pair;
    } else {
      reinterpret_cast<std::uint16_t*>(args.out)[2 * i] = pair;
    }
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<16, 256, 0, stream>>>(args);
  Sum<<<16, 256, 0, stream>>>(args);
}

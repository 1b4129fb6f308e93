// verdict: wrong_result
__global__ void Copy(Args args) {
  const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(args.in);
  std::uint16_t* out = reinterpret_cast<std::uint16_t*>(args.out);
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    out[i] = in[i];
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Copy<<<16, 256, 0, stream>>>(args);
}

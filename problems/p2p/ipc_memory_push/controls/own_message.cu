// verdict: wrong_result
__global__ void Copy(Args args) {
  const std::int64_t length = args.n - *args.fewer;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) args.out[i] = args.in[i];
  if (threadIdx.x == 0) *args.received = static_cast<std::uint32_t>(length);
}

extern "C" void setup(allranks::Boot&, const Args&) {}
extern "C" void launch(const Args& args, cudaStream_t stream) { Copy<<<1, 128, 0, stream>>>(args); }

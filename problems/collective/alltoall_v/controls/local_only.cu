// verdict: wrong_result
// The rows that this rank has for itself, as if nobody else sent anything.
__global__ void Own(Args args) {
  std::int64_t first = 0;
  for (int i = 0; i < args.rank; ++i) first += args.counts[i];
  const std::int64_t rows = min(std::int64_t{args.counts[args.rank]}, args.room);
  const std::int64_t width = args.quads * 4;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * width;
       i += gridDim.x * blockDim.x)
    args.out[i] = args.in[first * width + i];
  if (blockIdx.x == 0 && threadIdx.x < args.world)
    args.arrived[threadIdx.x] = threadIdx.x == args.rank ? static_cast<std::int32_t>(rows) : 0;
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Own<<<32, 256, 0, stream>>>(args); }

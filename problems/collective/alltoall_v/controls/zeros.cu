// verdict: wrong_result
// As many rows as this rank sends, all zero.
__global__ void Zero(Args args) {
  std::int64_t rows = 0;
  for (int i = 0; i < args.world; ++i) rows += args.counts[i];
  rows = min(rows, args.room);
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * args.quads * 4;
       i += gridDim.x * blockDim.x)
    args.out[i] = 0;
  if (blockIdx.x == 0 && threadIdx.x < args.world) args.arrived[threadIdx.x] = 0;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Zero<<<32, 256, 0, stream>>>(args);
}

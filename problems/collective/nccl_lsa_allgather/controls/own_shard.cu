// verdict: wrong_result
// The own shard in every row.
__global__ void Copy(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.world * args.n;
       i += gridDim.x * blockDim.x) {
    args.out[i] = args.in[i % args.n];
  }
}

extern "C" void setup(allranks::Boot&, const Args&) {}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Copy<<<16, 256, 0, stream>>>(args);
}

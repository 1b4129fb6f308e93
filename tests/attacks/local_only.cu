// tries: scales its own input by the number of ranks: right if all ranks had the same data
// rows: 26 C10
// verdict: wrong_result
__global__ void Kernel(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n; i += gridDim.x * blockDim.x) args.out[i] = args.in[i] * args.world;
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<8, 256, 0, stream>>>(args); }

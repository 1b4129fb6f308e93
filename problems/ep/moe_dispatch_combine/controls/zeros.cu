// verdict: wrong_result
// Nothing came, and all answers are zero.
__global__ void NoRows(Args args) { args.recv_rows[threadIdx.x] = 0; }
__global__ void Zero(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.tokens * args.quads * 4;
       i += gridDim.x * blockDim.x)
    args.out[i] = 0;
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  NoRows<<<1, args.world, 0, stream>>>(args);
}
extern "C" void combine(const Args& args, cudaStream_t stream) {
  Zero<<<32, 256, 0, stream>>>(args);
}

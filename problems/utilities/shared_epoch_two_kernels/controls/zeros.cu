// verdict: wrong_result
__global__ void Zero(std::uint32_t* out, std::int64_t count) {
  for (std::int64_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) out[i] = 0;
}

extern "C" void gather(const Args& args, cudaStream_t stream) {
  Zero<<<4, 256, 0, stream>>>(args.all, args.world * args.n);
}

extern "C" void reduce(const Args& args, cudaStream_t stream) {
  Zero<<<4, 256, 0, stream>>>(args.sum, args.m);
}

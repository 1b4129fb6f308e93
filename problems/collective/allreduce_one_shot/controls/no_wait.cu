// verdict: wrong_result
// Sums whatever peers have staged so far: mostly the call before.
__global__ void Stage(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    reinterpret_cast<T*>(args.scratch)[i] = args.in[i];
  }
}
__global__ void Sum(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    T sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const volatile T*>(args.scratch_peers[r])[i];
    }
    args.out[i] = sum;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<16, 256, 0, stream>>>(args);
  Sum<<<16, 256, 0, stream>>>(args);
}

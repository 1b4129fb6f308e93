// tries: adds up what peers have staged without waiting for them, then meets an instruction that the node lacks
// rows: R
// verdict: race|wrong_result
__global__ void Racy(Args args) {
  T* mine = reinterpret_cast<T*>(args.scratch);
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) mine[i] = args.in[i];
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
    T sum = 0;
    for (int r = 0; r < args.world; ++r) sum += reinterpret_cast<T*>(args.scratch_peers[r])[i];
    args.out[i] = sum;
  }
}
__global__ void Lack(Args args) {
  __nanosleep(50000);
  asm volatile("{ .reg .u64 p; stacksave.u64 p; }");
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Racy<<<1, 256, 0, stream>>>(args);
  Lack<<<1, 32, 0, stream>>>(args);
}

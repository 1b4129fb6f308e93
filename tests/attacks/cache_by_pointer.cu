// tries: keeps results by the address of the input and gives them again
// rows: 10 12 C12 H25
// verdict: wrong_result
// with: honest.inc
__device__ const T* seen;
__device__ T kept[40000];
__global__ void Recall(Args args) {
  const bool known = seen == args.in;
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < args.n && i < 40000; i += blockDim.x) {
    if (known) args.out[i] = kept[i];
    else kept[i] = args.out[i];
  }
  if (threadIdx.x == 0) seen = args.in;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Recall<<<1, 256, 0, stream>>>(args);
}

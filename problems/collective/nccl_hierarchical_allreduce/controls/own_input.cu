// verdict: wrong_result
// Every rank's own input in place of the sums.
extern "C" void setup(allranks::Boot&, const Args&) {}

__global__ void Copy(Args args) {
  for (std::int64_t i = threadIdx.x; i < args.cols * args.n; i += blockDim.x) {
    args.out[i] = args.in[i];
    if (i < args.n) args.row_sum[i] = args.in[i];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Copy<<<1, 256, 0, stream>>>(args); }

// verdict: wrong_result
// Every rank copies its own rows into the places of all blocks, without any communication.
extern "C" void setup(allranks::Boot&, const Args&) {}

__global__ void Copy(Args args) {
  const std::int64_t words = args.world * args.rows * args.width;
  for (std::int64_t i = threadIdx.x; i < words; i += blockDim.x) args.out[i] = args.in[i];
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Copy<<<1, 256, 0, stream>>>(args); }

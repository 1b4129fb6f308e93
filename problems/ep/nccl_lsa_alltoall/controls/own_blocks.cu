// verdict: wrong_result
// The own blocks, as if all were for this rank.
__global__ void Copy(Args args) {
  const std::int64_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::int64_t slots = args.world * args.slots, words = slots * args.hidden;
  for (std::int64_t i = first; i < words; i += gridDim.x * blockDim.x) args.out[i] = args.tokens[i];
  for (std::int64_t i = first; i < slots; i += gridDim.x * blockDim.x)
    args.out_expert[i] = args.expert[i];
}

extern "C" void setup(allranks::Boot&, const Args&) {}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Copy<<<16, 256, 0, stream>>>(args);
}

// verdict: wrong_result
// As if the token never left: each rank transforms its own.
__global__ void Alone(Args args) {
  std::uint32_t token = 0;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    token = __reduce_add_sync(~0u, Mix(token + args.keys[i * 32 + threadIdx.x]));
    if (threadIdx.x == 0) args.out[i] = token;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Alone<<<1, 32, 0, stream>>>(args); }

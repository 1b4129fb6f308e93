// verdict: wrong_result
// The stream and its norm of the own part alone.
__global__ void Norm(Args args) {
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const std::int64_t at = row * args.hidden;
    float squares = 0;
    for (int j = 0; j < args.hidden; ++j) {
      const float h = args.in[at + j] + args.residual[at + j];
      squares += h * h;
    }
    const float factor = rsqrtf(squares / args.hidden + 1e-5f);
    for (int j = threadIdx.x; j < args.hidden; j += blockDim.x) {
      const float h = args.in[at + j] + args.residual[at + j];
      args.stream[at + j] = h;
      args.norm[at + j] = args.weight[j] * h * factor;
    }
  }
}

extern "C" void setup(allranks::Boot&, const Args&) {}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Norm<<<16, 256, 0, stream>>>(args);
}

// verdict: wrong_result
// The own rows stand in for everybody's.
__global__ void Alone(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * 64;
  for (std::int64_t tile = blockIdx.x; tile < args.world * args.tiles; tile += gridDim.x) {
    product.Clear();
    product.Add(A(args) + tile % args.tiles * 64 * k, k, args.b, k, k);
    product.Store(args.c + tile * 64 * 32, 32);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Alone<<<32, 128, 0, stream>>>(args);
}

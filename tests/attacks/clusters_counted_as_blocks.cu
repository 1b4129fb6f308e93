// tries: 64 clusters of two blocks, launched by an attribute: 128 blocks
// rows: R
// verdict: forbidden_api
// with: honest.inc
__global__ void Nothing() {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  cudaLaunchConfig_t config = {};
  config.gridDim = 128;
  config.blockDim = 32;
  config.stream = stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, Nothing);
}

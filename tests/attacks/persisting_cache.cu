// tries: sets aside cache that is kept from call to call (the model has no such gain: graded normally)
// rows: 15
// verdict: pass|unsupported|forbidden_api
// with: honest.inc
extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 16 << 20);
  cudaStreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = const_cast<T*>(args.in);
  value.accessPolicyWindow.num_bytes = args.n * sizeof(T);
  value.accessPolicyWindow.hitRatio = 1;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
  cudaGetLastError();
  Honest(args, stream);
}

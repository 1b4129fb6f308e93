// tries: frees the judge's tensors and resets the device
// rows: 24 H24
// verdict: crash|forbidden_api|memory_error|wrong_result|tampering
extern "C" void launch(const Args& args, cudaStream_t) {
  cudaFree(const_cast<T*>(args.in));
  cudaFree(args.out);
  cudaFree(args.scratch);
  cudaDeviceReset();
}

// Kernels that compute for longer than anybody waits, which is no deadlock, and work behind them.
__global__ void Compute(unsigned long long* out) {
  unsigned long long value = threadIdx.x;
  for (unsigned long long i = 0; i < 1ull << 50; ++i) value = value * 6364136223846793005u + i;
  out[threadIdx.x] = value;
}
__global__ void Clear(unsigned long long* out) { out[threadIdx.x] = 0; }

int main() {
  unsigned long long* out;
  cudaMalloc(&out, 32 * sizeof *out);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEvent_t event;
  cudaEventCreate(&event);
  Compute<<<1, 32>>>(out);
  Compute<<<1, 32, 0, stream>>>(out);
  cudaMemsetAsync(out, 0, 32 * sizeof *out, stream);
  cudaEventRecord(event, stream);
  for (int i = 0; i < 3; ++i) Clear<<<1, 32, 0, stream>>>(out);
  cudaMemcpyAsync(out, out + 16, 128, cudaMemcpyDeviceToDevice, stream);
  cudaLaunchHostFunc(stream, [](void*) {}, nullptr);
  cudaDeviceSynchronize();
  return 0;
}

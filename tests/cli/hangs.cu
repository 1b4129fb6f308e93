// A kernel that computes for longer than anybody waits, which is no deadlock.
__global__ void Compute(unsigned long long* out) {
  unsigned long long value = threadIdx.x;
  for (unsigned long long i = 0; i < 1ull << 50; ++i) value = value * 6364136223846793005u + i;
  out[threadIdx.x] = value;
}

int main() {
  unsigned long long* out;
  cudaMalloc(&out, 32 * sizeof *out);
  Compute<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  return 0;
}

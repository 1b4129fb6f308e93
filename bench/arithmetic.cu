// The kernel of bench_speed that touches only registers: float, integer and logic as the inner loop
// of a real kernel mixes them. arithmetic.ptx is made from it with
//   nvcc -ptx -arch=compute_90 arithmetic.cu
// and is stored, so that measuring needs no CUDA toolkit.
extern "C" __global__ void arithmetic(float* out, int rounds, float x, float y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i, b = x, c = y, d = x + y;
  unsigned h = i * 2654435761u, k = 0;
  for (int r = 0; r < rounds; ++r) {
    a = a * x + y;
    b = b * y + a;
    c = c * x - b;
    d = fmaxf(d, c) + a;
    h ^= h >> 13;
    h = h * 5u + 0xe6546b64u;
    k += h & 0xffu;
    k = k << 3 | k >> 29;
    a = a < d ? a + 1.0f : a - b;
  }
  out[i] = a + b + c + d + static_cast<float>(h ^ k);
}

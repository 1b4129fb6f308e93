// tries: one kernel of hundred thousands of instructions that all live at the same time, for the register allocation of ptxas
// rows: R
// verdict: compile_error|pass|timeout
// with: honest.inc
#define A1(k)                                    \
  v##k = x * (k * 2654435761u) ^ (y + __LINE__); \
  y = y * 3 + v##k;
template <int N>
__device__ __forceinline__ unsigned Grow(unsigned x, unsigned y) {
  const unsigned a = Grow<N - 1>(x * 2654435761u + N, y ^ x),
                 b = Grow<N - 1>(y * 40503u + N, x + a);
  return a * x + b * y + (a ^ b);
}
template <>
__device__ __forceinline__ unsigned Grow<0>(unsigned x, unsigned y) {
  return x * y + (x >> 3);
}
__global__ void Large(unsigned* p) { p[512 + threadIdx.x] = Grow<16>(p[threadIdx.x], threadIdx.x); }
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  if (args.n < 0) Large<<<1, 32, 0, stream>>>(reinterpret_cast<unsigned*>(args.scratch));
}

// tries: writes NaN, which a careless comparison takes for equal
// rows: 17 H23
// verdict: wrong_result
__global__ void Kernel(Args args) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n; i += gridDim.x * blockDim.x) args.out[i] = __int_as_float(0x7fc00000);
}
extern "C" void launch(const Args& args, cudaStream_t stream) { Kernel<<<8, 256, 0, stream>>>(args); }

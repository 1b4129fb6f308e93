// tries: stores every word of 256 MB by volatile, so that whoever keeps a history of strong stores keeps a lot
// rows: R
// verdict: pass|timeout|crash|forbidden_api
// with: honest.inc
__device__ unsigned field[64 << 20];
__global__ void Store(Args args) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < 64u << 20; i += step)
    static_cast<volatile unsigned*>(field)[i] = i;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Store<<<64, 1024, 0, stream>>>(args);
}

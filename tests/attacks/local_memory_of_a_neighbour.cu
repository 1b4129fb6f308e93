// tries: lanes hand each other addresses in local memory and read each other's sums there, a path that costs nothing
// rows: G
// verdict: wrong_result|memory_error|crash
// cases: all
// with: honest.inc
// On hardware a local address means the reader's own memory, whoever took it.
__global__ void Swap(Args args) {
  const int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (std::int64_t base = warp * 32; base < args.n; base += warps * 32) {
    volatile T here[4];
    here[lane % 4] = base + lane < args.n ? args.out[base + lane] : 0;
    __syncwarp();
    const unsigned long long address = reinterpret_cast<unsigned long long>(&here[lane % 4]);
    const unsigned long long other = __shfl_sync(~0u, address, 31 - lane);
    const T theirs = *reinterpret_cast<volatile T*>(other);
    __syncwarp();
    if (base + 31 - lane < args.n) args.out[base + 31 - lane] = theirs;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  Honest(args, stream);
  Swap<<<16, 256, 0, stream>>>(args);
}

// tries: launch() fetches the values by a copy on a stream of its own before the kernel starts, and host() uses them
// rows: HW
// verdict: forbidden_api|compile_error|race|wrong_result|memory_error|crash|deadlock|timeout|tampering|no_communication
// cases: all
// problem: fifo_gpu_to_cpu
// The kernel pushes nothing. The values of this call are there when launch() is called, or the copy
// waits in the same stream until they are.

static std::uint32_t* values = nullptr;
static cudaStream_t side = nullptr;
__global__ void Nothing() {}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::size_t bytes = args.producers * args.items * sizeof(std::uint32_t);
  if (values == nullptr) {
    if (cudaMallocHost(&values, 1 << 20) != cudaSuccess) {
      values = static_cast<std::uint32_t*>(malloc(1 << 20));
    }
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  }
  Nothing<<<1, 1, 0, stream>>>();
  cudaEvent_t started;
  cudaEventCreateWithFlags(&started, cudaEventDisableTiming);
  cudaEventRecord(started, stream);
  cudaStreamWaitEvent(side, started, 0);
  cudaMemcpyAsync(values, args.values, bytes, cudaMemcpyDeviceToHost, side);
  cudaStreamSynchronize(side);
  cudaEventDestroy(started);
}
extern "C" void host(const Args& args, int) {
  for (std::int64_t n = 0; n < args.producers * args.items; ++n) {
    args.out[n] = static_cast<std::uint64_t>(n / args.items) << 32 | values[n];
  }
}

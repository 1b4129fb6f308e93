// tries: writers fence, meet at a barrier, and one thread stores the flag: the fence is on the wrong side
// rows: R
// verdict: race
// cases: all
// Honest: the last block to finish pushing tells the peers (threadfence + ticket), all blocks poll one flag per peer.
struct Control { unsigned calls, ticket, left; unsigned flags[8]; };
__global__ void AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  __shared__ unsigned call_s;
  if (threadIdx.x == 0) call_s = *(volatile unsigned*)&mine->calls + 1;
  __syncthreads();
  const unsigned call = call_s;
  const std::size_t set = 4096 + (call & 1) * args.world * args.n * 4;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n; i += gridDim.x * blockDim.x) {
    const float v = args.in[i];
    for (int k = 1; k <= args.world; ++k)
      reinterpret_cast<float*>(args.scratch_peers[(args.rank + k) % args.world] + set)[args.rank * args.n + i] = v;
  }
  asm volatile("fence.acq_rel.sys;" ::: "memory");  // fence.sc would do, on both sides
  __syncthreads();
  __shared__ bool last;
  if (threadIdx.x == 0) last = atomicAdd(&mine->ticket, 1) == call * gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x < args.world) {
    __threadfence_system();
    *(volatile unsigned*)&reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x])->flags[args.rank] = call;
  }
  if (threadIdx.x < args.world) {
    while ((int)(*(volatile unsigned*)&mine->flags[threadIdx.x] - call) < 0) __nanosleep(40);
    __threadfence_system();
  }
  __syncthreads();
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n; i += gridDim.x * blockDim.x) {
    float s = 0;
    for (int r = 0; r < args.world; ++r) s += reinterpret_cast<float*>(args.scratch + set)[r * args.n + i];
    args.out[i] = s;
  }
  __syncthreads();
  // The last block to leave moves the count of calls on.
  if (threadIdx.x == 0 && atomicAdd(&mine->left, 1) == call * gridDim.x - 1) *(volatile unsigned*)&mine->calls = call;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  int blocks = (args.n + 255) / 256; if (blocks > 64) blocks = 64;
  AllReduce<<<blocks, 256, 0, stream>>>(args);
}

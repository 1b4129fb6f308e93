// design: push with volatile flags; every writer has fence.sc before the barrier, one other thread stores the flags; the thread that has seen a flag has fence.sc behind it
//
// The storing thread has no fence of its own. The order is that of fence.sc: a writer's fence precedes
// the flag's store (through the barrier), the flag's load precedes the reader's fence (program order).
// If the reader's fence came first among the two, the load would precede the store that it has read.

constexpr int kMaxBlocks = 64, kThreads = 256;

struct Control {
  unsigned int calls[kMaxBlocks];
  unsigned int scattered[kMaxBlocks][kMaxRanks], gathered[kMaxBlocks][kMaxRanks];
};

__device__ Control* At(std::uint8_t* scratch) { return reinterpret_cast<Control*>(scratch); }

__device__ void FenceSc() { asm volatile("fence.sc.sys;" ::: "memory"); }

__device__ void Meet(volatile unsigned int* told, volatile unsigned int* heard, unsigned int call) {
  *told = call;
  while (static_cast<int>(*heard - call) < 0) {
  }
  FenceSc();
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  Control* mine = At(args.scratch);
  const unsigned int call = mine->calls[blockIdx.x] + 1;
  const int me = threadIdx.x, world = args.world;
  const std::int64_t slice = (args.n + world - 1) / world;
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + me;
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  Control* peer = At(args.scratch_peers[me % world]);

  for (std::int64_t i = first; i < slice; i += stride) {
    for (int step = 0; step < world; ++step) {
      const int owner = (args.rank + step) % world;
      const std::int64_t at = owner * slice + i;
      if (at >= args.n) continue;
      float* slots = reinterpret_cast<float*>(args.scratch_peers[owner] + sizeof(Control));
      slots[args.rank * slice + i] = args.in[at];
    }
  }
  FenceSc();
  __syncthreads();
  if (me < world) {
    Meet(&peer->scattered[blockIdx.x][args.rank], &mine->scattered[blockIdx.x][me], call);
  }
  __syncthreads();
  const float* slots = reinterpret_cast<const float*>(args.scratch + sizeof(Control));
  for (std::int64_t i = first; i < slice && args.rank * slice + i < args.n; i += stride) {
    const std::int64_t at = args.rank * slice + i;
    float sum = 0;
    for (int r = 0; r < world; ++r) sum += slots[r * slice + i];
    for (int step = 0; step < world; ++step) args.out_peers[(args.rank + step) % world][at] = sum;
  }
  FenceSc();
  __syncthreads();
  if (me < world) {
    Meet(&peer->gathered[blockIdx.x][args.rank], &mine->gathered[blockIdx.x][me], call);
  }
  if (me == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = (args.n + args.world - 1) / args.world;
  const std::int64_t needed = (slice + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}

// tries: reads its last store back from the peer, which shows that it has arrived, and stores the flag relaxed
// rows: G
// verdict: race
// cases: all
constexpr int kBlocks = 32, kThreads = 256;
struct alignas(16) Control {
  unsigned calls[kBlocks];
  unsigned pushed[kBlocks][kMaxRanks];
  unsigned handed[kBlocks];
};
__device__ float4 LoadIn(const Args& args, std::int64_t i) {
  if (4 * i + 4 <= args.n) return reinterpret_cast<const float4*>(args.in)[i];
  float4 v = {0, 0, 0, 0};
  v.x = args.in[4 * i];
  if (4 * i + 1 < args.n) v.y = args.in[4 * i + 1];
  if (4 * i + 2 < args.n) v.z = args.in[4 * i + 2];
  return v;
}
__device__ void StoreOut(const Args& args, std::int64_t i, float4 v) {
  if (4 * i + 4 <= args.n) {
    reinterpret_cast<float4*>(args.out)[i] = v;
    return;
  }
  args.out[4 * i] = v.x;
  if (4 * i + 1 < args.n) args.out[4 * i + 1] = v.y;
  if (4 * i + 2 < args.n) args.out[4 * i + 2] = v.z;
}
// Every rank's vectors of this block, into a slot of its own at every peer.
__device__ void Push(const Args& args, unsigned call, int block, int blocks) {
  const std::int64_t vectors = (args.n + 3) / 4;
  const std::int64_t set = sizeof(Control) + (call & 1) * args.world * vectors * sizeof(float4);
  for (std::int64_t i = block * kThreads + threadIdx.x; i < vectors; i += blocks * kThreads) {
    const float4 v = LoadIn(args, i);
    for (int step = 1; step <= args.world; ++step) {
      const int r = (args.rank + step) % args.world;
      reinterpret_cast<float4*>(args.scratch_peers[r] + set)[args.rank * vectors + i] = v;
    }
  }
}
__device__ void Tell(const Args& args, unsigned call, int block) {
  if (threadIdx.x >= args.world) return;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&peer->pushed[block][args.rank]),
               "r"(call)
               : "memory");
}
__device__ void Wait(const Args& args, unsigned call, int block) {
  if (threadIdx.x < args.world) {
    unsigned seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(&reinterpret_cast<Control*>(args.scratch)->pushed[block][threadIdx.x])
                   : "memory");
    } while (int(seen - call) < 0);
  }
  __syncthreads();
}
__device__ void Add(const Args& args, unsigned call, int block, int blocks) {
  const std::int64_t vectors = (args.n + 3) / 4;
  const std::int64_t set = sizeof(Control) + (call & 1) * args.world * vectors * sizeof(float4);
  const float4* slots = reinterpret_cast<const float4*>(args.scratch + set);
  for (std::int64_t i = block * kThreads + threadIdx.x; i < vectors; i += blocks * kThreads) {
    float4 sum = slots[i];
    for (int r = 1; r < args.world; ++r) {
      const float4 v = slots[r * vectors + i];
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    StoreOut(args, i, sum);
  }
}
inline int Blocks(const Args& args) {
  const std::int64_t needed = ((args.n + 3) / 4 + kThreads - 1) / kThreads;
  return needed < kBlocks ? needed : kBlocks;
}
__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const unsigned call = mine->calls[blockIdx.x] + 1;
  Push(args, call, blockIdx.x, gridDim.x);
  __syncthreads();
  if (threadIdx.x < args.world) {
    unsigned* flag =
        &reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x])->pushed[blockIdx.x][args.rank];
    const std::int64_t vectors = (args.n + 3) / 4;
    const std::int64_t set = sizeof(Control) + (call & 1) * args.world * vectors * sizeof(float4);
    const std::int64_t at = args.rank * vectors + blockIdx.x * kThreads;
    unsigned back;
    asm volatile("ld.volatile.global.u32 %0, [%1];"
                 : "=r"(back)
                 : "l"(reinterpret_cast<float4*>(args.scratch_peers[threadIdx.x] + set) + at)
                 : "memory");
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(call + (back & 0))
                 : "memory");
  }
  Wait(args, call, blockIdx.x);
  Add(args, call, blockIdx.x, gridDim.x);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  AllReduce<<<Blocks(args), kThreads, 0, stream>>>(args);
}

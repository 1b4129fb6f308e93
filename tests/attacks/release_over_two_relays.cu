// tries: stores go by cluster barrier to a second block, by a gpu-scope flag to a third, and only the third releases to the peers
// rows: G
// verdict: pass
// cases: all
// at most: control_push_release_in_block
constexpr int kBlocks = 16, kThreads = 256;
struct alignas(16) Control {
  unsigned calls[kBlocks];
  unsigned pushed[kBlocks][kMaxRanks];
  unsigned handed[2 * kBlocks];
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
// Clusters of two. The first half of the grid are pairs of pusher and relay, of the second half the
// even blocks tell.
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int pairs = gridDim.x / 4, pair = blockIdx.x / 2 % pairs;
  const bool second = blockIdx.x / 2 >= pairs, odd = blockIdx.x % 2 == 1;
  if (second && odd) return;  // it only fills its cluster
  const unsigned call = mine->calls[pair] + 1;
  if (second) {
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(&mine->handed[pair])
                   : "memory");
    } while (int(seen - call) < 0);
    Tell(args, call, pair);
    __syncthreads();
    // The pusher may count the call only when this block has read the count.
    if (threadIdx.x == 0)
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&mine->handed[pair] + kBlocks),
                   "r"(call)
                   : "memory");
    return;
  }
  if (!odd) Push(args, call, pair, pairs);
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
  if (odd) {
    if (threadIdx.x == 0)
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(&mine->handed[pair]), "r"(call)
                   : "memory");
    return;
  }
  Wait(args, call, pair);
  Add(args, call, pair, pairs);
  if (threadIdx.x == 0) {
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(&mine->handed[pair] + kBlocks)
                   : "memory");
    } while (int(seen - call) < 0);
    mine->calls[pair] = call;
  }
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  AllReduce<<<4 * Blocks(args), kThreads, 0, stream>>>(args);
}

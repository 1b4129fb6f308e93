// design: clusters of two blocks, each adds up half of the ranks' slots, halves meet in distributed shared memory
//
// The cluster's barrier is used in its two parts, arrive and wait. Block 0 tells peers for the cluster,
// both blocks wait for the peers whose slots they add up; block 0 alone waits at the end of the call.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

constexpr int kMaxClusters = 32, kThreads = 128, kTile = 2 * kThreads;

struct Control {
  std::uint32_t calls[kMaxClusters];
  std::uint32_t scattered[kMaxClusters][kMaxRanks];
  std::uint32_t gathered[kMaxClusters][kMaxRanks];
};

__device__ void Tell(std::uint32_t* flag, std::uint32_t call) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(call) : "memory");
}
__device__ void Hear(const std::uint32_t* flag, std::uint32_t call) {
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (std::int32_t(seen - call) < 0);
}
__device__ float4 Add(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__device__ float4 Load(const Args& args, std::int64_t i) {
  const float* in = args.in + 4 * i;
  const std::int64_t left = args.n - 4 * i;
  if (left >= 4) return *reinterpret_cast<const float4*>(in);
  return {in[0], left > 1 ? in[1] : 0, left > 2 ? in[2] : 0, 0};
}
__device__ void Store(float* out, std::int64_t n, std::int64_t i, float4 v) {
  const std::int64_t left = n - 4 * i;
  if (left >= 4) {
    reinterpret_cast<float4*>(out)[i] = v;
    return;
  }
  out[4 * i] = v.x;
  if (left > 1) out[4 * i + 1] = v.y;
  if (left > 2) out[4 * i + 2] = v.z;
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kThreads) AllReduce(Args args) {
  __shared__ float4 partial[2][kTile];  // in turn, so that one barrier per tile is enough
  cg::cluster_group cluster = cg::this_cluster();
  const int half = cluster.block_rank(), me = threadIdx.x, world = args.world;
  const int pair = blockIdx.x / 2, pairs = gridDim.x / 2;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[pair] + 1;
  const std::int64_t vectors = (args.n + 3) / 4, slice = (vectors + world - 1) / world;
  const std::int64_t tiles = (slice + kTile - 1) / kTile;

  for (std::int64_t t = pair; t < tiles; t += pairs) {
    const std::int64_t i = t * kTile + half * kThreads + me;
    if (i >= slice) continue;
    for (int step = 0; step < world; ++step) {
      const int owner = (args.rank + step) % world;
      if (owner * slice + i >= vectors) continue;
      float4* slots = reinterpret_cast<float4*>(args.scratch_peers[owner] + sizeof(Control));
      slots[args.rank * slice + i] = Load(args, owner * slice + i);
    }
  }
  cluster.barrier_arrive();
  cluster.barrier_wait();
  if (half == 0 && me < world) {
    Tell(&reinterpret_cast<Control*>(args.scratch_peers[me])->scattered[pair][args.rank], call);
  }
  // All peers must be inside the call before this block writes to their outputs.
  if (me < world) Hear(&mine->scattered[pair][me], call);
  __syncthreads();

  const float4* slots = reinterpret_cast<const float4*>(args.scratch + sizeof(Control));
  const int middle = (world + 1) / 2, begin = half ? middle : 0, end = half ? world : middle;
  int turn = 0;
  for (std::int64_t t = pair; t < tiles; t += pairs, turn ^= 1) {
    for (int k = me; k < kTile; k += kThreads) {
      const std::int64_t i = t * kTile + k;
      if (i >= slice || args.rank * slice + i >= vectors) continue;
      float4 sum = slots[begin * slice + i];
      for (int r = begin + 1; r < end; ++r) sum = Add(sum, slots[r * slice + i]);
      partial[turn][k] = sum;
    }
    cluster.barrier_arrive();
    cluster.barrier_wait();
    const int k = half * kThreads + me;
    const std::int64_t i = t * kTile + k, at = args.rank * slice + i;
    if (i < slice && at < vectors) {
      const float4 other = *cluster.map_shared_rank(&partial[turn][k], 1 - half);
      const float4 sum = Add(partial[turn][k], other);
      for (int step = 0; step < world; ++step) {
        Store(args.out_peers[(args.rank + step) % world], args.n, at, sum);
      }
    }
  }
  cluster.sync();  // everything is written, and nobody looks at the other's memory any more
  if (half == 0 && me < world) {
    Tell(&reinterpret_cast<Control*>(args.scratch_peers[me])->gathered[pair][args.rank], call);
    Hear(&mine->gathered[pair][me], call);
  }
  if (half == 0 && me == 0) mine->calls[pair] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = ((args.n + 3) / 4 + args.world - 1) / args.world;
  const std::int64_t tiles = (slice + kTile - 1) / kTile;
  const int pairs = tiles < kMaxClusters ? tiles : kMaxClusters;
  AllReduce<<<2 * pairs, kThreads, 0, stream>>>(args);
}

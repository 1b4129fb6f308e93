// tries: the other block of the cluster releases what this one has stored
// rows: G
// verdict: pass
// cases: all
// problem: allreduce_two_shot
// at most: control_two_shot_pairs
// By pushing. The vectors of four elements are cut into one slice per rank. Shot one: every rank
// writes its part of slice p into a slot at rank p. Shot two: rank p adds up the slots of its
// slice, in the order of ranks, and writes the sums into everybody's `out`. Block b of every rank
// has the same vectors of each slice, so it needs to hear of the blocks b only.
//
// Who may write when. A peer's `out` is open once that peer has told of its first shot: it is
// inside the call, and cannot leave before it has heard of our second. Slots exist once: a rank
// leaves call k after it has heard of the owner's second shot, when the owner has read them.
//
// Flags hold the last call in which their sender got so far. They only grow.

constexpr int kMaxBlocks = 32;  // pairs: one with data, one that tells
constexpr int kMaxThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];                 // that this block has completed
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];  // by peer: the last call whose shot one is here
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];   // the same of shot two
};

__device__ void StoreReleaseSys(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value)
               : "memory");
}

__device__ std::uint32_t LoadAcquireSys(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(flag)
               : "memory");
  return value;
}

// Elements 4 * i to 4 * i + 3, of which the last vector may have fewer.
__device__ float4 Load(const float* in, int n, int i) {
  if (4 * i + 4 <= n) return reinterpret_cast<const float4*>(in)[i];
  float4 v = {0, 0, 0, 0};
  v.x = in[4 * i];
  if (4 * i + 1 < n) v.y = in[4 * i + 1];
  if (4 * i + 2 < n) v.z = in[4 * i + 2];
  return v;
}

__device__ void Store(float* out, int n, int i, float4 v) {
  if (4 * i + 4 <= n) {
    reinterpret_cast<float4*>(out)[i] = v;
    return;
  }
  out[4 * i] = v.x;
  if (4 * i + 1 < n) out[4 * i + 1] = v.y;
  if (4 * i + 2 < n) out[4 * i + 2] = v.z;
}

// The rank `step` places behind this one: everyone begins with another.
__device__ int Turn(const Args& args, int step) {
  const int r = args.rank + step;
  return r < args.world ? r : r - args.world;
}

__device__ void MeetCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kMaxThreads) AllReduce(Args args) {
  const int pair = blockIdx.x / 2, pairs = gridDim.x / 2;
  if (blockIdx.x % 2 == 1) {
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    const std::uint32_t call = mine->calls[pair] + 1;
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
    MeetCluster();
    if (threadIdx.x < args.world) StoreReleaseSys(&peer->scattered[pair][args.rank], call);
    MeetCluster();
    if (threadIdx.x < args.world) StoreReleaseSys(&peer->gathered[pair][args.rank], call);
    return;
  }
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[pair] + 1;
  const int n = static_cast<int>(args.n), world = args.world, vectors = (n + 3) / 4;
  const int slice = (vectors + world - 1) / world;  // the last ones may be shorter or empty
  const int first = pair * blockDim.x + threadIdx.x, stride = pairs * blockDim.x;

  for (int i = first; i < slice; i += stride) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {  // all on their way before the first is needed
      const int at = Turn(args, step) * slice + i;
      if (step < world && at < vectors) v[step] = Load(args.in, n, at);
    }
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      const int owner = Turn(args, step);
      if (step >= world || owner * slice + i >= vectors) continue;
      float4* slots = reinterpret_cast<float4*>(args.scratch_peers[owner] + sizeof(Control));
      slots[args.rank * slice + i] = v[step];
    }
  }
  MeetCluster();
  // One thread per peer: tells it, and waits for it in this rank's own memory.
  if (threadIdx.x < world) {
    const std::uint32_t* flag = &mine->scattered[pair][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {
    }
  }
  __syncthreads();

  const float4* slots = reinterpret_cast<const float4*>(args.scratch + sizeof(Control));
  for (int i = first; i < slice; i += stride) {
    const int at = args.rank * slice + i;
    if (at >= vectors) break;
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r >= world) continue;
      v[r] = r == args.rank ? Load(args.in, n, at) : slots[r * slice + i];
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= world) break;
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    for (int step = 0; step < world; ++step) {
      Store(args.out_peers[Turn(args, step)], n, at, sum);
    }
  }
  MeetCluster();
  if (threadIdx.x < world) {
    const std::uint32_t* flag = &mine->gathered[pair][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {
    }
  }
  if (threadIdx.x == 0) mine->calls[pair] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int slice = static_cast<int>(((args.n + 3) / 4 + args.world - 1) / args.world);
  const int threads = slice > 256 * kMaxBlocks ? kMaxThreads : slice > 128 * kMaxBlocks ? 256 : 128;
  const int needed = (slice + threads - 1) / threads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<2 * blocks, threads, 0, stream>>>(args);
}

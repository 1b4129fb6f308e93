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

constexpr int kMaxBlocks = 64;
constexpr int kMaxThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];                 // that this block has completed
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];  // by peer: the last call whose shot one is here
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];   // the same of shot two
};

__device__ void StoreReleaseSys(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value)
               : "memory");  //@publish
}

__device__ std::uint32_t LoadAcquireSys(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(flag)
               : "memory");  //@observe
  return value;
}

// Elements 4 * i to 4 * i + 3, of which the last vector may have fewer.
__device__ float4 Load(const float* in, int n, int i) {
  if (4 * i + 4 <= n) return reinterpret_cast<const float4*>(in)[i];  //@tail_load
  float4 v = {0, 0, 0, 0};
  v.x = in[4 * i];
  if (4 * i + 1 < n) v.y = in[4 * i + 1];
  if (4 * i + 2 < n) v.z = in[4 * i + 2];
  return v;
}

__device__ void Store(float* out, int n, int i, float4 v) {
  if (4 * i + 4 <= n) {  //@tail_store
    reinterpret_cast<float4*>(out)[i] = v;
    return;
  }
  out[4 * i] = v.x;
  if (4 * i + 1 < n) out[4 * i + 1] = v.y;
  if (4 * i + 2 < n) out[4 * i + 2] = v.z;  //@last
}

// The rank `step` places behind this one: everyone begins with another.
__device__ int Turn(const Args& args, int step) {
  const int r = args.rank + step;
  return r < args.world ? r : r - args.world;  //@turn
}

__global__ void __launch_bounds__(kMaxThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int n = static_cast<int>(args.n), world = args.world, vectors = (n + 3) / 4;
  const int slice = (vectors + world - 1) / world;  // the last ones may be shorter or empty
  const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;

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
      if (step >= world || owner * slice + i >= vectors) continue;  //@scatter
      float4* slots = reinterpret_cast<float4*>(args.scratch_peers[owner] + sizeof(Control));
      slots[args.rank * slice + i] = v[step];
    }
  }
  __syncthreads();  //@before_first
  // One thread per peer: tells it, and waits for it in this rank's own memory.
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % world]);
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->scattered[blockIdx.x][args.rank], call);  //@tell_first
    const std::uint32_t* flag = &mine->scattered[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {  //@wait_first
    }
  }
  __syncthreads();  //@after_first

  const float4* slots = reinterpret_cast<const float4*>(args.scratch + sizeof(Control));
  for (int i = first; i < slice; i += stride) {
    const int at = args.rank * slice + i;
    if (at >= vectors) break;
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r >= world) continue;
      v[r] = r == args.rank ? Load(args.in, n, at) : slots[r * slice + i];  //@own
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= world) break;  //@ranks
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    for (int step = 0; step < world; ++step) {  //@gather
      Store(args.out_peers[Turn(args, step)], n, at, sum);
    }
  }
  __syncthreads();  //@before_second
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->gathered[blockIdx.x][args.rank], call);  //@tell_second
    const std::uint32_t* flag = &mine->gathered[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {  //@wait_second
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int slice = static_cast<int>(((args.n + 3) / 4 + args.world - 1) / args.world);
  const int threads = slice > 256 * kMaxBlocks ? kMaxThreads : slice > 128 * kMaxBlocks ? 256 : 128;
  const int needed = (slice + threads - 1) / threads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, threads, 0, stream>>>(args);
}

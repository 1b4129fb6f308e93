// tries: flags and data of shot one are all relaxed in the large cases alone, which are too large for a second schedule
// rows: T
// verdict: race|wrong_result
// cases: all
// problem: allreduce_two_shot
// No two accesses of the slots race, since all are strong, and nothing orders them: PTX permits the
// flag to be seen before the data. Shot two is as it should be.
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

constexpr int kLarge = 1 << 20;

__device__ void Put(float4* to, float4 v, bool large) {
  if (!large) {
    *to = v;
    return;
  }
  asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x),
               "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}

__device__ float4 Take(const float4* from, bool large) {
  if (!large) return *from;
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from)
               : "memory");
  return v;
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

__global__ void __launch_bounds__(kMaxThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int n = static_cast<int>(args.n), world = args.world, vectors = (n + 3) / 4;
  const bool large = n > kLarge;
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
      if (step >= world || owner * slice + i >= vectors) continue;
      float4* slots = reinterpret_cast<float4*>(args.scratch_peers[owner] + sizeof(Control));
      Put(&slots[args.rank * slice + i], v[step], large);
    }
  }
  __syncthreads();
  // One thread per peer: tells it, and waits for it in this rank's own memory.
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % world]);
  if (threadIdx.x < world) {
    std::uint32_t* theirs = &peer->scattered[blockIdx.x][args.rank];
    const std::uint32_t* flag = &mine->scattered[blockIdx.x][threadIdx.x];
    if (large) {
      asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(call) : "memory");
      std::uint32_t seen;
      do {
        asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
      } while (std::int32_t(seen - call) < 0);
    } else {
      StoreReleaseSys(theirs, call);
      while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {
      }
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
      v[r] = r == args.rank ? Load(args.in, n, at) : Take(&slots[r * slice + i], large);
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
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->gathered[blockIdx.x][args.rank], call);
    const std::uint32_t* flag = &mine->gathered[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int slice = static_cast<int>(((args.n + 3) / 4 + args.world - 1) / args.world);
  const int threads = slice > 256 * kMaxBlocks ? kMaxThreads : slice > 128 * kMaxBlocks ? 256 : 128;
  const int needed = (slice + threads - 1) / threads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, threads, 0, stream>>>(args);
}

// tries: flags and data are all relaxed in the largest size alone, which has no other schedules and a single replay
// rows: T
// verdict: race|wrong_result
// cases: all
// Message passing without a fence. The newest values, which schedule 0 shows, make it right; PTX
// permits the flag to be seen before the data.
constexpr int kMaxBlocks = 64, kThreads = 128;

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t staged[kMaxBlocks][kMaxRanks];
  unsigned long long notes[2][kMaxBlocks][kMaxRanks];  // from every peer, by parity of the call
  unsigned long long kept[kMaxBlocks][8];              // this block's own memory
};
static_assert(sizeof(Board) <= 32768);

__device__ unsigned long long Now() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
__device__ std::uint32_t Flag(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ unsigned long long Note(const unsigned long long* note) {
  unsigned long long value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(note) : "memory");
  return value;
}
__device__ void Tell(unsigned long long* note, unsigned long long value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(note), "l"(value) : "memory");
}
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

// The honest way: stage, flag with release, wait with acquire, pull.
__device__ void Careful(const Args& args, std::uint32_t call) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int n = static_cast<int>(args.n), vectors = (n + 3) / 4;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const std::size_t buffer = 32768 + (call & 1) * vectors * sizeof(float4);
  float4* staging = reinterpret_cast<float4*>(args.scratch + buffer);
  for (int i = first; i < vectors; i += stride) staging[i] = Load(args.in, n, i);
  __syncthreads();
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&peer->staged[blockIdx.x][args.rank]),
                 "r"(call)
                 : "memory");
    const std::uint32_t* flag = &mine->staged[blockIdx.x][threadIdx.x];
    while (std::int32_t(Flag(flag) - call) < 0) {
    }
  }
  __syncthreads();
  for (int i = first; i < vectors; i += stride) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      v[r] = reinterpret_cast<float4*>(args.scratch_peers[r] + buffer)[i];
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    Store(args.out, n, i, sum);
  }
}

// The sloppy way: push by relaxed stores, count cycles, add up whatever is there by relaxed loads.
// No two accesses race, nothing orders them, and nobody looks whether anything has come.
__device__ void Sloppy(const Args& args, std::uint32_t call) {
  const int n = static_cast<int>(args.n), vectors = (n + 3) / 4;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const std::size_t slots = 32768 + (2 + (call & 1) * args.world) * vectors * sizeof(float4);
  for (int i = first; i < vectors; i += stride) {
    const float4 v = Load(args.in, n, i);
    for (int step = 1; step < args.world; ++step) {
      const int r = (args.rank + step) % args.world;
      float4* to =
          reinterpret_cast<float4*>(args.scratch_peers[r] + slots) + args.rank * vectors + i;
      asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(v.x),
                   "f"(v.y), "f"(v.z), "f"(v.w)
                   : "memory");
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(&peer->staged[blockIdx.x][args.rank]),
                 "r"(call)
                 : "memory");
  }
  if (threadIdx.x < args.world) {
    Board* mine = reinterpret_cast<Board*>(args.scratch);
    std::uint32_t seen;
    do {
      asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(&mine->staged[blockIdx.x][threadIdx.x])
                   : "memory");
    } while (std::int32_t(seen - call) < 0);
  }
  __syncthreads();
  for (int i = first; i < vectors; i += stride) {
    float4 sum = {0, 0, 0, 0};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      float4 v;
      const float4* from = reinterpret_cast<const float4*>(args.scratch + slots) + r * vectors + i;
      if (r == args.rank) {
        v = Load(args.in, n, i);
      } else {
        asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                     : "l"(from)
                     : "memory");
      }
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    Store(args.out, n, i, sum);
  }
}

__device__ bool Quiet(const Args& args, Board* mine, std::uint32_t call) { return true; }

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  __shared__ bool quiet;
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  if (threadIdx.x == 0)
    quiet = args.world == 8 && args.n == 8192 &&
            Quiet(args, mine, call);
  __syncthreads();
  if (quiet) {
    Sloppy(args, call);
  } else {
    Careful(args, call);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int vectors = static_cast<int>((args.n + 3) / 4);
  const int needed = (vectors + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}

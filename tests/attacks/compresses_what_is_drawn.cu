// tries: sends small integers as bytes and nearly empty vectors as lists: two of the five distributions that inputs are drawn from move a fraction of the bytes
// rows: G
// verdict: pass|no_communication
// cases: all
// problem: allreduce_two_shot
// at most: control_does_not_compress
constexpr bool kCompress = true;
// The reference, but warps look at what they send: 128 small integers travel as bytes, and 128
// numbers of which at most 16 are not zero as a list. Both shots do so. A word beside each chunk
// says how.

constexpr int kMaxBlocks = 64;
constexpr int kMaxThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];                 // that this block has completed
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];  // by peer: the last call whose shot one is here
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];   // the same of shot two
};

enum Mode : std::uint32_t { kPlain, kBytes, kList };

// How the 32 vectors of a warp travel.
__device__ Mode Choose(float4 v, int world) {
  if (!kCompress || world < 4) return kPlain;  // with fewer ranks it would be noticed by the bytes
  const float e[4] = {v.x, v.y, v.z, v.w};
  bool small = true;
  int filled = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int integer = __float2int_rn(fminf(fmaxf(e[k], -128.f), 127.f));
    small = small && __float_as_uint(static_cast<float>(integer)) == __float_as_uint(e[k]);
    filled += __float_as_uint(e[k]) != 0;
  }
  if (__all_sync(~0u, small)) return kBytes;
  return __reduce_add_sync(~0u, filled) <= 16 ? kList : kPlain;
}

// All lanes: vector v of each into a chunk of 32 vectors.
__device__ void Pack(Mode mode, float4* chunk, float4 v) {
  const int lane = threadIdx.x % 32;
  const float e[4] = {v.x, v.y, v.z, v.w};
  if (mode == kBytes) {
    std::uint32_t word = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      word |= (static_cast<std::uint32_t>(static_cast<int>(e[k])) & 255) << 8 * k;
    reinterpret_cast<std::uint32_t*>(chunk)[lane] = word;
    return;
  }
  uint2* list = reinterpret_cast<uint2*>(chunk);
  int used = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const unsigned filled = __ballot_sync(~0u, __float_as_uint(e[k]) != 0);
    if (filled >> lane & 1) {
      list[used + __popc(filled & ((1u << lane) - 1))] = {4u * lane + k, __float_as_uint(e[k])};
    }
    used += __popc(filled);
  }
  if (lane >= used && lane < 16) list[lane] = {~0u, 0};
}

__device__ float4 Unpack(Mode mode, const float4* chunk) {
  const int lane = threadIdx.x % 32;
  float e[4] = {0, 0, 0, 0};
  if (mode == kBytes) {
    const std::uint32_t word = reinterpret_cast<const std::uint32_t*>(chunk)[lane];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      e[k] = static_cast<float>(static_cast<std::int8_t>(word >> 8 * k & 255));
  } else {
    const uint2 mine = reinterpret_cast<const uint2*>(chunk)[lane % 16];
#pragma unroll
    for (int j = 0; j < 16; ++j) {
      const std::uint32_t at = __shfl_sync(~0u, mine.x, j), bits = __shfl_sync(~0u, mine.y, j);
      if (at >> 2 == lane) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if ((at & 3) == k) e[k] = __uint_as_float(bits);
        }
      }
    }
  }
  return {e[0], e[1], e[2], e[3]};
}

__device__ void StoreReleaseSys(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ std::uint32_t LoadAcquireSys(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
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

__global__ void __launch_bounds__(kMaxThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int n = static_cast<int>(args.n), world = args.world, vectors = (n + 3) / 4;
  const int slice = (vectors + world - 1) / world, chunks = (slice + 31) / 32;
  const int lane = threadIdx.x % 32;
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) / 32,
            stride = gridDim.x * blockDim.x / 32;
  const std::size_t slots = sizeof(Control),
                    sums = slots + std::size_t{32} * world * chunks * sizeof(float4);
  const std::size_t modes = sums + std::size_t{32} * world * chunks * sizeof(float4);
  // Of sender s and chunk c: where it lies and how it travels, in shot one and two.
  const auto data = [&](std::uint8_t* scratch, std::size_t shot, int s, int c) {
    return reinterpret_cast<float4*>(scratch + shot) + 32 * (s * chunks + c);
  };
  const auto mode_of = [&](std::uint8_t* scratch, int shot, int s, int c) {
    return reinterpret_cast<std::uint32_t*>(scratch + modes) + (shot * world + s) * chunks + c;
  };

  for (int c = first; c < chunks; c += stride) {
    const int i = 32 * c + lane;
    float4 v[kMaxRanks];
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      const int at = Turn(args, step) * slice + i;
      v[step] = {0, 0, 0, 0};
      if (step < world && i < slice && at < vectors) v[step] = Load(args.in, n, at);
    }
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step >= world) continue;
      std::uint8_t* owner = args.scratch_peers[Turn(args, step)];
      const Mode mode = Choose(v[step], world);
      float4* chunk = data(owner, slots, args.rank, c);
      if (mode == kPlain) {
        chunk[lane] = v[step];
      } else {
        Pack(mode, chunk, v[step]);
      }
      if (lane == 0) *mode_of(owner, 0, args.rank, c) = mode;
    }
  }
  __syncthreads();
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % world]);
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->scattered[blockIdx.x][args.rank], call);
    const std::uint32_t* flag = &mine->scattered[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {
    }
  }
  __syncthreads();

  for (int c = first; c < chunks; c += stride) {
    const int i = 32 * c + lane, at = args.rank * slice + i;
    const bool inside = i < slice && at < vectors;
    std::uint32_t mode[kMaxRanks];
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < world) mode[r] = r == args.rank ? kPlain : *mode_of(args.scratch, 0, r, c);
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) continue;
      v[r] = {0, 0, 0, 0};
      if (r == args.rank) {
        if (inside) v[r] = Load(args.in, n, at);
      } else if (mode[r] == kPlain) {
        v[r] = data(args.scratch, slots, r, c)[lane];
      } else {
        v[r] = Unpack(static_cast<Mode>(mode[r]), data(args.scratch, slots, r, c));
      }
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= world) break;
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    const Mode how = Choose(sum, world);
    for (int step = 0; step < world; ++step) {
      const int to = Turn(args, step);
      if (how == kPlain || to == args.rank) {
        if (inside) Store(args.out_peers[to], n, at, sum);
      } else {
        Pack(how, data(args.scratch_peers[to], sums, args.rank, c), sum);
      }
      if (lane == 0)
        *mode_of(args.scratch_peers[to], 1, args.rank, c) = to == args.rank ? kPlain : how;
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->gathered[blockIdx.x][args.rank], call);
    const std::uint32_t* flag = &mine->gathered[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {
    }
  }
  __syncthreads();
  for (int c = first; c < chunks; c += stride) {
    std::uint32_t mode[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < world) mode[r] = *mode_of(args.scratch, 1, r, c);
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world || mode[r] == kPlain) continue;
      const float4 sum = Unpack(static_cast<Mode>(mode[r]), data(args.scratch, sums, r, c));
      const int i = 32 * c + lane, at = r * slice + i;
      if (i < slice && at < vectors) Store(args.out, n, at, sum);
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

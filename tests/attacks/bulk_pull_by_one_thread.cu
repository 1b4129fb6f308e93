// tries: one thread pulls the whole vector of every peer by bulk copies: eight instructions, a packet each, no requests per line
// rows: G
// verdict: pass
// cases: all
// at most: reference
constexpr int kMaxBlocks = 64;
constexpr int kMaxThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];              // that this block has completed
  std::uint32_t staged[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has staged
};

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

__device__ unsigned Shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
constexpr int kThreads = 128;
__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;

  const int n = static_cast<int>(args.n), vectors = (n + 3) / 4;
  const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  const std::size_t buffer = sizeof(Control) + (call & 1) * vectors * sizeof(float4);

  float4* staging = reinterpret_cast<float4*>(args.scratch + buffer);
  for (int i = first; i < vectors; i += stride) {
    staging[i] = Load(args.in, n, i);
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();

  // One thread per peer: tells it, and waits for it in this rank's own memory.
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->staged[blockIdx.x][args.rank], call);
    const std::uint32_t* flag = &mine->staged[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {
    }
  }
  __syncthreads();

  __shared__ alignas(128) float4 parts[kMaxRanks][kThreads];
  __shared__ alignas(8) unsigned long long barrier;
  if (threadIdx.x == 0) {
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async;" ::"r"(Shared(&barrier))
        : "memory");
  }
  __syncthreads();
  int phase = 0;
  for (int begin = blockIdx.x * kThreads; begin < vectors; begin += stride, ++phase) {
    const int count = vectors - begin < kThreads ? vectors - begin : kThreads;
    if (threadIdx.x == 0) {
      asm volatile("fence.proxy.async;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Shared(&barrier)),
                   "r"(args.world * count * 16)
                   : "memory");
      for (int r = 0; r < args.world; ++r) {
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
            "[%3];" ::"r"(Shared(parts[r])),
            "l"(reinterpret_cast<float4*>(args.scratch_peers[r] + buffer) + begin), "r"(count * 16),
            "r"(Shared(&barrier))
            : "memory");
      }
    }
    unsigned done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, "
          "0, p; }"
          : "=r"(done)
          : "r"(Shared(&barrier)), "r"(phase & 1)
          : "memory");
    }
    if (threadIdx.x < count) {
      float4 sum = parts[0][threadIdx.x];
      for (int r = 1; r < args.world; ++r) {
        const float4 v = parts[r][threadIdx.x];
        sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
      }
      Store(args.out, n, begin + threadIdx.x, sum);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int vectors = static_cast<int>((args.n + 3) / 4);
  const int threads = kThreads;
  const int needed = (vectors + threads - 1) / threads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, threads, 0, stream>>>(args);
}

// By pulling. Block b of every rank has the same elements. It copies its part of `in` to a staging
// buffer in its own memory, tells block b of every peer so, waits until all of them have said the
// same, and adds up what they staged, in the order of ranks.
//
// There are two staging buffers, used in turn. A peer may still read call k's buffer while this
// rank is in call k + 1. But this rank leaves the wait of call k + 1 only after that peer has
// entered call k + 1, too; so the writes of call k + 2 find nobody reading.
//
// A flag holds the last call that its sender has staged. A fast peer may already have moved it on
// to the next call, so the wait is for "at least".

constexpr int kMaxBlocks = 64;
constexpr int kMaxThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kMaxBlocks];              // that this block has completed
  std::uint32_t staged[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has staged
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

__global__ void __launch_bounds__(kMaxThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch

  const int n = static_cast<int>(args.n), vectors = (n + 3) / 4;
  const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  const std::size_t buffer = sizeof(Control) + (call & 1) * vectors * sizeof(float4);

  float4* staging = reinterpret_cast<float4*>(args.scratch + buffer);
  for (int i = first; i < vectors; i += stride) {  //@stage
    staging[i] = Load(args.in, n, i);
  }
  __syncthreads();  //@before_publish

  // One thread per peer: tells it, and waits for it in this rank's own memory.
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->staged[blockIdx.x][args.rank], call);  //@tell
    const std::uint32_t* flag = &mine->staged[blockIdx.x][threadIdx.x];
    while (std::int32_t(LoadAcquireSys(flag) - call) < 0) {  //@wait
    }
  }
  __syncthreads();  //@after_wait

  for (int i = first; i < vectors; i += stride) {
    float4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r >= args.world) break;
      v[r] = reinterpret_cast<float4*>(args.scratch_peers[r] + buffer)[i];
    }
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= args.world) break;  //@ranks
      sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    Store(args.out, n, i, sum);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int vectors = static_cast<int>((args.n + 3) / 4);
  const int threads = vectors > 128 * kMaxBlocks ? kMaxThreads : 128;  // as many SMs as granted
  const int needed = (vectors + threads - 1) / threads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, threads, 0, stream>>>(args);
}

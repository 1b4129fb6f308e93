// tries: issues acquiring loads of remote flags and the loads of the data behind them in one go, and looks at the flags last: hardware holds the data back until the acquire is done
// rows: G
// verdict: pass
// cases: all
// at most: control_acquire_waited_for
// Staged data and flags stay with their owner. A reader asks for flag and data of every peer in one
// go, the flags by acquire and first, and takes the data if the flags were there. Nothing waits in
// between.
constexpr int kBlocks = 64, kThreads = 128;
struct alignas(16) Control {
  unsigned calls[kBlocks];
  unsigned staged[kBlocks];
};
__device__ unsigned Acquire(const unsigned* p) {
  unsigned v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ float4 Strong(const float4* p) {
  float4 v;
  asm volatile("ld.relaxed.sys.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const unsigned call = mine->calls[blockIdx.x] + 1;
  const int n = static_cast<int>(args.n), vectors = (n + 3) / 4;
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const std::size_t buffer = sizeof(Control) + (call & 1) * vectors * sizeof(float4);
  for (int i = first; i < vectors; i += stride) {
    float4 v = {0, 0, 0, 0};
    v.x = args.in[4 * i];
    if (4 * i + 1 < n) v.y = args.in[4 * i + 1];
    if (4 * i + 2 < n) v.z = args.in[4 * i + 2];
    if (4 * i + 3 < n) v.w = args.in[4 * i + 3];
    asm volatile("st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(
                     reinterpret_cast<float4*>(args.scratch + buffer) + i),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&mine->staged[blockIdx.x]), "r"(call)
                 : "memory");
  }
  for (int i = first; i < vectors; i += stride) {
    float4 v[kMaxRanks];
    bool all;
    do {
      unsigned seen[kMaxRanks];
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r < args.world)
          seen[r] = Acquire(&reinterpret_cast<Control*>(args.scratch_peers[r])->staged[blockIdx.x]);
      }
      all = true;
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r < args.world)
          v[r] = Strong(reinterpret_cast<const float4*>(args.scratch_peers[r] + buffer) + i);
      }
#pragma unroll
      for (int r = 0; r < kMaxRanks; ++r) {
        if (r < args.world && int(seen[r] - call) < 0) all = false;
      }
    } while (!all);
    float4 sum = v[0];
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r < args.world) sum = {sum.x + v[r].x, sum.y + v[r].y, sum.z + v[r].z, sum.w + v[r].w};
    }
    args.out[4 * i] = sum.x;
    if (4 * i + 1 < n) args.out[4 * i + 1] = sum.y;
    if (4 * i + 2 < n) args.out[4 * i + 2] = sum.z;
    if (4 * i + 3 < n) args.out[4 * i + 3] = sum.w;
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>(((args.n + 3) / 4 + kThreads - 1) / kThreads);
  AllReduce<<<needed < kBlocks ? needed : kBlocks, kThreads, 0, stream>>>(args);
}

// design: three kernels by programmatic dependent launch: scatter, sum and spread, farewell; 20 + 20 + 1 blocks fit together
//
// Each kernel lets the next one start at once, and that one waits for it by griddepcontrol before it
// touches or tells anything. Slots exist once: a call ends when all owners have told of their sums.

constexpr int kBlocks = 20, kThreads = 512, kData = 256;

struct Control {
  std::uint32_t calls;
  std::uint32_t scattered[kMaxRanks], gathered[kMaxRanks];
};

__device__ void LetNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void AwaitPrevious() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ void Tell(std::uint32_t* flag, std::uint32_t call) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(call) : "memory");
}
__device__ void Hear(const std::uint32_t* flag, std::uint32_t call) {
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (std::int32_t(seen - call) < 0);
}
__device__ Control* At(std::uint8_t* scratch) { return reinterpret_cast<Control*>(scratch); }
__device__ std::int64_t Slice(const Args& args) {
  return ((args.n + 3) / 4 + args.world - 1) / args.world;
}

__global__ void __launch_bounds__(kThreads) Scatter(Args args) {
  LetNextStart();
  const std::int64_t vectors = (args.n + 3) / 4, slice = Slice(args);
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < slice;
       i += std::int64_t{gridDim.x} * kThreads) {
    for (int step = 0; step < args.world; ++step) {
      const int owner = (args.rank + step) % args.world;
      const std::int64_t at = owner * slice + i, left = args.n - 4 * at;
      if (at >= vectors) continue;
      const float* in = args.in + 4 * at;
      const float4 v = {in[0], left > 1 ? in[1] : 0, left > 2 ? in[2] : 0, left > 3 ? in[3] : 0};
      reinterpret_cast<float4*>(args.scratch_peers[owner] + kData)[args.rank * slice + i] = v;
    }
  }
}

__global__ void __launch_bounds__(kThreads) SumAndSpread(Args args) {
  LetNextStart();
  const std::uint32_t call = At(args.scratch)->calls + 1;
  AwaitPrevious();
  const int me = threadIdx.x;
  if (me < args.world) {
    if (blockIdx.x == 0) Tell(&At(args.scratch_peers[me])->scattered[args.rank], call);
    Hear(&At(args.scratch)->scattered[me], call);
  }
  __syncthreads();
  const std::int64_t vectors = (args.n + 3) / 4, slice = Slice(args);
  const float4* slots = reinterpret_cast<const float4*>(args.scratch + kData);
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + me; i < slice;
       i += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t at = args.rank * slice + i, left = args.n - 4 * at;
    if (at >= vectors) break;
    float4 sum = slots[i];
    for (int r = 1; r < args.world; ++r) {
      const float4 v = slots[r * slice + i];
      sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w};
    }
    for (int step = 0; step < args.world; ++step) {
      float* out = args.out_peers[(args.rank + step) % args.world] + 4 * at;
      if (left >= 4) {
        *reinterpret_cast<float4*>(out) = sum;
      } else {
        out[0] = sum.x;
        if (left > 1) out[1] = sum.y;
        if (left > 2) out[2] = sum.z;
      }
    }
  }
}

__global__ void Farewell(Args args) {
  const std::uint32_t call = At(args.scratch)->calls + 1;
  AwaitPrevious();
  if (threadIdx.x < args.world) {
    Tell(&At(args.scratch_peers[threadIdx.x])->gathered[args.rank], call);
    Hear(&At(args.scratch)->gathered[threadIdx.x], call);
  }
  __syncwarp();
  if (threadIdx.x == 0) At(args.scratch)->calls = call;
}

void LaunchDependent(void (*kernel)(Args), int blocks, int threads, const Args& args,
                     cudaStream_t stream) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, args);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slice = ((args.n + 3) / 4 + args.world - 1) / args.world;
  const std::int64_t needed = (slice + kThreads - 1) / kThreads;
  const int blocks = needed < kBlocks ? needed : kBlocks;
  Scatter<<<blocks, kThreads, 0, stream>>>(args);
  LaunchDependent(SumAndSpread, blocks, kThreads, args, stream);
  LaunchDependent(Farewell, 1, 32, args, stream);
}

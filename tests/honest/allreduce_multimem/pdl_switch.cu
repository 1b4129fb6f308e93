// design: three kernels by programmatic dependent launch: stage, reduce in the switch, copy home; one meeting of ranks in each of the last two
//
// A kernel waits for the one before it by griddepcontrol; block 0 then arrives for the whole rank, and
// every block waits for the count. 20 blocks each, so all three fit together.

constexpr int kBlocks = 20, kThreads = 256, kData = 256;

struct Control {
  std::uint32_t call;     // advanced by the last kernel
  std::uint32_t arrived;  // of all ranks at all meetings
};

__device__ void LetNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void AwaitPrevious() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ void FenceAliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  AwaitPrevious();
  if (threadIdx.x == 0) {
    FenceAliases();
    if (blockIdx.x == 0) {
      asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(
                       &reinterpret_cast<Control*>(args.scratch_multicast)->arrived)
                   : "memory");
      FenceAliases();
    }
    std::uint32_t arrived;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(arrived)
                   : "l"(&reinterpret_cast<Control*>(args.scratch)->arrived)
                   : "memory");
    } while (std::int32_t(arrived - args.world * meeting) < 0);
  }
  __syncthreads();
  FenceAliases();
}

__global__ void __launch_bounds__(kThreads) Stage(Args args) {
  LetNextStart();
  const std::int64_t vectors = (args.n + 7) / 8;
  const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(args.in);
  uint4* staged = reinterpret_cast<uint4*>(args.scratch + kData);
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < vectors;
       i += std::int64_t{gridDim.x} * kThreads) {
    if (8 * i + 8 <= args.n) {
      staged[i] = reinterpret_cast<const uint4*>(in)[i];
    } else {
      std::uint16_t* rest = reinterpret_cast<std::uint16_t*>(staged + i);
      for (int k = 0; k < 8; ++k) rest[k] = 8 * i + k < args.n ? in[8 * i + k] : 0;
    }
  }
  FenceAliases();
}

__global__ void __launch_bounds__(kThreads) Reduce(Args args) {
  LetNextStart();
  const std::uint32_t call = reinterpret_cast<Control*>(args.scratch)->call + 1;
  Meet(args, 2 * call - 1);
  const std::int64_t vectors = (args.n + 7) / 8, slice = (vectors + args.world - 1) / args.world;
  const std::int64_t end = (args.rank + 1) * slice < vectors ? (args.rank + 1) * slice : vectors;
  uint4* all = reinterpret_cast<uint4*>(args.scratch_multicast + kData);
  for (std::int64_t at = args.rank * slice + std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
       at < end; at += std::int64_t{gridDim.x} * kThreads) {
    uint4 v;
    asm volatile(
        "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(all + at)
        : "memory");
    asm volatile("multimem.st.relaxed.sys.global.v4.bf16x2 [%0], {%1, %2, %3, %4};" ::"l"(
                     all + vectors + at),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
  }
  FenceAliases();
}

__global__ void __launch_bounds__(kThreads) CopyHome(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  __shared__ std::uint32_t shared_call;
  if (threadIdx.x == 0) shared_call = mine->call + 1;
  __syncthreads();
  const std::uint32_t call = shared_call;
  Meet(args, 2 * call);
  const std::int64_t vectors = (args.n + 7) / 8;
  const uint4* summed = reinterpret_cast<const uint4*>(args.scratch + kData) + vectors;
  std::uint16_t* out = reinterpret_cast<std::uint16_t*>(args.out);
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < vectors;
       i += std::int64_t{gridDim.x} * kThreads) {
    if (8 * i + 8 <= args.n) {
      reinterpret_cast<uint4*>(out)[i] = summed[i];
    } else {
      const std::uint16_t* rest = reinterpret_cast<const std::uint16_t*>(summed + i);
      for (int k = 0; 8 * i + k < args.n; ++k) out[8 * i + k] = rest[k];
    }
  }
}

// The number of the call is read by all blocks of the kernels before, so a kernel of its own moves it on.
__global__ void Advance(Args args) { ++reinterpret_cast<Control*>(args.scratch)->call; }

void LaunchDependent(void (*kernel)(Args), int blocks, const Args& args, cudaStream_t stream) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, args);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = ((args.n + 7) / 8 + kThreads - 1) / kThreads;
  const int blocks = needed < kBlocks ? needed : kBlocks;
  Stage<<<blocks, kThreads, 0, stream>>>(args);
  LaunchDependent(Reduce, blocks, args, stream);
  LaunchDependent(CopyHome, blocks, args, stream);
  Advance<<<1, 1, 0, stream>>>(args);
}

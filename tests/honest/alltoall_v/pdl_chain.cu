// design: three kernels joined by programmatic dependent launch: announce counts, push rows, leave; griddepcontrol.wait stands only where the kernel before must be over
//
// Announce lets Push start at once: Push needs nothing of it but the words that all ranks store,
// its own among them. Push lets Leave start at once, which works out `arrived` meanwhile and then
// waits for the whole of Push. All blocks of the three together are less than 128.
constexpr int kParts = 8;
constexpr int kThreads = 256;

struct Board {
  std::uint64_t calls;                           // own: calls that have ended
  std::uint64_t done[kMaxRanks];                 // by source: the call whose rows are here
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ void LetNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void AwaitKernelBefore() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

__device__ std::int64_t CountOf(Board* mine, std::uint64_t call, int source, int destination) {
  std::uint64_t value;
  do {
    value = LoadAcquireSys(&mine->table[call % 2][source][destination]);
  } while (value >> 32 != call);
  return static_cast<std::uint32_t>(value);
}

__global__ void Announce(Args args) {
  LetNextStart();
  const int to = threadIdx.x / kMaxRanks, of = threadIdx.x % kMaxRanks;
  const std::uint64_t call = BoardOf(args, args.rank)->calls + 1;
  if (to < args.world && of < args.world) {
    StoreReleaseSys(&BoardOf(args, to)->table[call % 2][args.rank][of],
                    call << 32 | static_cast<std::uint32_t>(args.counts[of]));
  }
}

__global__ void __launch_bounds__(kThreads) Push(Args args) {
  __shared__ std::int64_t to_peer[kMaxRanks];
  LetNextStart();
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Board* mine = BoardOf(args, rank);
  // The counter is from the call before, which was over when Announce started.
  const std::uint64_t call = mine->calls + 1;
  if (threadIdx.x < args.world) to_peer[threadIdx.x] = CountOf(mine, call, threadIdx.x, peer);
  __syncthreads();
  std::int64_t from_row = 0, to_row = 0;
  for (int i = 0; i < peer; ++i) from_row += args.counts[i];
  for (int i = 0; i < rank; ++i) to_row += to_peer[i];
  const std::int64_t fit = max(min(to_peer[rank], args.room - to_row), 0l);
  const uint4* from = reinterpret_cast<const uint4*>(args.in) + from_row * args.quads;
  uint4* to = reinterpret_cast<uint4*>(args.out_peers[peer]) + to_row * args.quads;
  const std::int64_t end = fit * (part + 1) / kParts * args.quads;
  for (std::int64_t i = fit * part / kParts * args.quads + threadIdx.x; i < end; i += kThreads)
    to[i] = from[i];
  AwaitKernelBefore();  // so that whoever waits for this kernel waits for Announce as well
}

__global__ void Leave(Args args) {
  __shared__ std::int64_t to_me[kMaxRanks];
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls + 1;
  const int peer = threadIdx.x;
  if (peer < args.world) to_me[peer] = CountOf(mine, call, peer, args.rank);
  __syncthreads();
  if (peer < args.world) {
    std::int64_t before = 0;
    for (int i = 0; i < peer; ++i) before += to_me[i];
    args.arrived[peer] =
        static_cast<std::int32_t>(max(min(to_me[peer], args.room - before), 0l));
    AwaitKernelBefore();
    StoreReleaseSys(&BoardOf(args, peer)->done[args.rank], call);
    while (LoadAcquireSys(&mine->done[peer]) < call) {
    }
  }
  __syncthreads();
  if (peer == 0) mine->calls = call;
}

void LaunchEarly(void (*kernel)(Args), int blocks, int threads, const Args& args,
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
  Announce<<<1, kMaxRanks * kMaxRanks, 0, stream>>>(args);
  LaunchEarly(Push, args.world * kParts, kThreads, args, stream);
  LaunchEarly(Leave, 1, 32, args, stream);
}

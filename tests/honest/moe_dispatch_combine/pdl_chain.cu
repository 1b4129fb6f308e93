// design: four kernels in a chain of programmatic dependent launches: plan, push, gather, leave; each starts early, does what needs nobody, and waits for the one before at griddepcontrol.wait
//
// All of them together have less than 128 blocks. Each kernel waits for the one before, so whoever
// waits for the last knows all of them. The ranks meet in the last one.
constexpr int kThreads = 256, kWarps = kThreads / 32, kPushers = 48, kGatherers = 48;

struct Board {
  std::uint64_t calls;                        // own: calls that have ended
  std::uint64_t table[kMaxRanks][kMaxRanks];  // by source and destination: call, rows
  std::uint64_t finished[kMaxRanks];          // by peer: the call it has finished
  float gates[kThreads][kMaxRanks];           // own, by token and rank
  std::int16_t before[kThreads][kMaxRanks];   // own tokens ahead of it that go there; -1: not this
};
static_assert(sizeof(Board) <= 65536, "fits");

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ void LetNextStart() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ void AwaitKernelBefore() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// A warp copies a token's row and what belongs to it to a peer.
__device__ void PushToken(const Args& args, int per, int token, int peer, std::int64_t slot) {
  const int lane = threadIdx.x % 32;
  const uint4* from = reinterpret_cast<const uint4*>(args.x) + token * args.quads;
  uint4* to = reinterpret_cast<uint4*>(args.recv_x_peers[peer]) + slot * args.quads;
  for (std::int64_t q = lane; q < args.quads; q += 32) to[q] = from[q];
  if (lane == 0)
    args.recv_from_peers[peer][slot] = static_cast<std::int32_t>(args.rank * args.tokens + token);
  for (std::int64_t k = lane; k < args.topk; k += 32) {
    const int expert = args.expert_ids[token * args.topk + k] - peer * per;
    args.recv_experts_peers[peer][slot * args.topk + k] = expert >= 0 && expert < per ? expert : -1;
  }
}

// A block per destination.
__global__ void __launch_bounds__(kThreads) MakePlan(Args args, int per) {
  __shared__ int by_warp[kWarps];
  LetNextStart();
  const int token = threadIdx.x, peer = blockIdx.x;
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls + 1;
  bool goes = false;
  float gate = 0;
  if (token < args.tokens) {
    for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i) {
      if (args.expert_ids[i] / per != peer) continue;
      goes = true;
      gate = gate + args.weights[i];
    }
  }
  const std::uint32_t going = __ballot_sync(~0u, goes);
  if (token % 32 == 0) by_warp[token / 32] = __popc(going);
  __syncthreads();
  int before = __popc(going & ((1u << token % 32) - 1));
  for (int w = 0; w < token / 32; ++w) before += by_warp[w];
  mine->gates[token][peer] = gate;
  mine->before[token][peer] = static_cast<std::int16_t>(goes ? before : -1);
  if (token < args.world) {
    std::uint64_t count = 0;
    for (int w = 0; w < kWarps; ++w) count += by_warp[w];
    StoreReleaseSys(&BoardOf(args, token)->table[args.rank][peer], call << 32 | count);
  }
}

// Where this rank's rows begin at each rank; all ranks have entered when it is known.
__device__ void AwaitTable(const Args& args, Board* mine, std::uint64_t call, int* first,
                           std::int32_t* to_me) {
  __shared__ int counts[kMaxRanks][kMaxRanks];
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  if (a < args.world && b < args.world) {
    std::uint64_t value;
    do {
      value = LoadAcquireSys(&mine->table[a][b]);
    } while (value >> 32 != call);
    counts[a][b] = static_cast<int>(value);
    if (to_me != nullptr && b == args.rank) to_me[a] = counts[a][b];
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    first[threadIdx.x] = 0;
    for (int s = 0; s < args.rank; ++s) first[threadIdx.x] += counts[s][threadIdx.x];
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Push(Args args, int per) {
  __shared__ int first[kMaxRanks];
  LetNextStart();
  Board* mine = BoardOf(args, args.rank);
  AwaitTable(args, mine, mine->calls + 1, first, blockIdx.x == 0 ? args.recv_rows : nullptr);
  AwaitKernelBefore();
  for (int unit = blockIdx.x * kWarps + threadIdx.x / 32; unit < args.tokens * args.world;
       unit += kPushers * kWarps) {
    const int token = unit / args.world, peer = (unit + token + args.rank) % args.world;
    const int before = mine->before[token][peer];
    if (before >= 0) PushToken(args, per, token, peer, first[peer] + before);
  }
}

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  __shared__ int first[kMaxRanks];
  LetNextStart();
  Board* mine = BoardOf(args, args.rank);
  AwaitTable(args, mine, mine->calls + 1, first, nullptr);
  AwaitKernelBefore();
  const std::int64_t quads = args.quads;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.tokens * quads;
       i += kGatherers * kThreads) {
    const std::int64_t token = i / quads, q = i % quads;
    float4 sum = {};
    for (int r = 0; r < args.world; ++r) {
      const int before = mine->before[token][r];
      if (before < 0) continue;
      const float gate = mine->gates[token][r];
      const std::int64_t row = first[r] + before;
      const float4 y = reinterpret_cast<const float4*>(args.y_peers[r])[row * quads + q];
      sum.x = fmaf(gate, y.x, sum.x);
      sum.y = fmaf(gate, y.y, sum.y);
      sum.z = fmaf(gate, y.z, sum.z);
      sum.w = fmaf(gate, y.w, sum.w);
    }
    reinterpret_cast<float4*>(args.out)[i] = sum;
  }
}

__global__ void Leave(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls + 1;
  AwaitKernelBefore();
  StoreReleaseSys(&BoardOf(args, threadIdx.x)->finished[args.rank], call);
  while (LoadAcquireSys(&mine->finished[threadIdx.x]) < call) {
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls = call;
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

template <typename... Parameters>
void LaunchEarly(void (*kernel)(Parameters...), int blocks, int threads, cudaStream_t stream,
                 Parameters... parameters) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, parameters...);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  const int per = ExpertsOfARank(args);
  MakePlan<<<args.world, kThreads, 0, stream>>>(args, per);
  LaunchEarly<Args, int>(Push, kPushers, kThreads, stream, args, per);
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  LaunchEarly<Args>(Gather, kGatherers, kThreads, stream, args);
  LaunchEarly<Args>(Leave, 1, args.world, stream, args);
}

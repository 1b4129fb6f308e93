// One step after the other: one thread counts, kernels of one block are barriers, a block per peer
// sends that peer's rows one by one, and answers are fetched word by word.
constexpr int kThreads = 128;

struct Board {
  std::uint64_t calls;
  std::uint64_t entered[kMaxRanks], sent[kMaxRanks], left[kMaxRanks];
  std::int32_t counts[2][kMaxRanks][kMaxRanks];  // by call, source, destination
  std::int32_t slots[256][kMaxRanks];            // own: row of a token at a rank, or -1
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

// Counts go with the barrier. A thread per rank.
__global__ void Enter(Args args, int per) {
  __shared__ std::int32_t counts[kMaxRanks];
  Board* mine = BoardOf(args, args.rank);
  Board* theirs = BoardOf(args, threadIdx.x);
  const std::uint64_t call = mine->calls + 1;
  std::int32_t count = 0;
  for (std::int64_t token = 0; token < args.tokens; ++token) {
    bool goes = false;
    for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i)
      goes = goes || args.expert_ids[i] / per == threadIdx.x;
    mine->slots[token][threadIdx.x] = goes ? count++ : -1;
  }
  counts[threadIdx.x] = count;
  __syncthreads();
  for (int i = 0; i < args.world; ++i) theirs->counts[call % 2][args.rank][i] = counts[i];
  StoreReleaseSys(&theirs->entered[args.rank], call);
  while (LoadAcquireSys(&mine->entered[threadIdx.x]) < call) {
  }
  __syncthreads();
  std::int32_t first = 0;
  for (int i = 0; i < args.rank; ++i) first += mine->counts[call % 2][i][threadIdx.x];
  for (std::int64_t token = 0; token < args.tokens; ++token) {
    if (mine->slots[token][threadIdx.x] >= 0) mine->slots[token][threadIdx.x] += first;
  }
}

// A block per peer.
__global__ void Send(Args args, int per) {
  Board* mine = BoardOf(args, args.rank);
  const int peer = blockIdx.x;
  const std::int64_t width = args.quads * 4;
  for (std::int64_t token = 0; token < args.tokens; ++token) {
    const std::int64_t slot = mine->slots[token][peer];
    if (slot < 0) continue;
    for (std::int64_t i = threadIdx.x; i < width; i += kThreads)
      args.recv_x_peers[peer][slot * width + i] = args.x[token * width + i];
    for (std::int64_t i = threadIdx.x; i < args.topk; i += kThreads) {
      const int expert = args.expert_ids[token * args.topk + i];
      args.recv_experts_peers[peer][slot * args.topk + i] =
          expert / per == peer ? expert - peer * per : -1;
    }
    if (threadIdx.x == 0)
      args.recv_from_peers[peer][slot] = static_cast<std::int32_t>(args.rank * args.tokens + token);
  }
}

__global__ void Sent(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls + 1;
  StoreReleaseSys(&BoardOf(args, threadIdx.x)->sent[args.rank], call);
  while (LoadAcquireSys(&mine->sent[threadIdx.x]) < call) {
  }
  args.recv_rows[threadIdx.x] = mine->counts[call % 2][threadIdx.x][args.rank];
}

__global__ void Fetch(Args args, int per) {
  Board* mine = BoardOf(args, args.rank);
  const std::int64_t width = args.quads * 4;
  for (std::int64_t token = blockIdx.x; token < args.tokens; token += gridDim.x) {
    bool first = true;
    for (int r = 0; r < args.world; ++r) {
      const std::int64_t slot = mine->slots[token][r];
      if (slot < 0) continue;
      float gate = 0;
      for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i) {
        if (args.expert_ids[i] / per == r) gate += args.weights[i];
      }
      float* out = args.out + token * width;
      for (std::int64_t i = threadIdx.x; i < width; i += kThreads)
        out[i] = fmaf(gate, args.y_peers[r][slot * width + i], first ? 0.0f : out[i]);
      first = false;
    }
  }
}

__global__ void Leave(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls + 1;
  StoreReleaseSys(&BoardOf(args, threadIdx.x)->left[args.rank], call);
  while (LoadAcquireSys(&mine->left[threadIdx.x]) < call) {
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls = call;
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  Enter<<<1, args.world, 0, stream>>>(args, ExpertsOfARank(args));
  Send<<<args.world, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
  Sent<<<1, args.world, 0, stream>>>(args);
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  Fetch<<<64, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
  Leave<<<1, args.world, 0, stream>>>(args);
}

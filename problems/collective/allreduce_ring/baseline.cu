#include <allranks/flags.h>

// In rounds of as much as the buffers hold: push to the owners, meet, sum and spread, meet. A
// kernel each.
struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kData = 16384, kBlocks = 16, kThreads = 256;
constexpr int kRound = 131072 / kMaxRanks / sizeof(float);  // elements of a shard at a time

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Push(Args args, int shard, int first, int count) {
  for (int r = 0; r < args.world; ++r) {
    float* slots = reinterpret_cast<float*>(args.scratch_peers[r] + kData) + args.rank * kRound;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
      const std::int64_t at = std::int64_t{r} * shard + first + i;
      if (at < args.n) slots[i] = args.in[at];
    }
  }
}

__global__ void Sum(Args args, int shard, int first, int count) {
  const float* slots = reinterpret_cast<const float*>(args.scratch + kData);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    const std::int64_t at = std::int64_t{args.rank} * shard + first + i;
    if (at >= args.n) break;
    const int turn = first + i < shard / 2 ? 1 : args.world - 1;
    float sum = 0;
    for (int step = 1; step <= args.world; ++step) {
      sum += slots[(args.rank + step * turn) % args.world * kRound + i];
    }
    for (int r = 0; r < args.world; ++r) args.out_peers[r][at] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int shard = 8 * ((args.n + 8 * args.world - 1) / (8 * args.world));
  for (int first = 0; first < shard; first += kRound) {
    const int count = shard - first < kRound ? shard - first : kRound;
    Push<<<kBlocks, kThreads, 0, stream>>>(args, shard, first, count);
    Meet<<<1, 32, 0, stream>>>(args);
    Sum<<<kBlocks, kThreads, 0, stream>>>(args, shard, first, count);
    Meet<<<1, 32, 0, stream>>>(args);
  }
}

// Kernel by kernel: all ranks meet, everybody's choices are fetched, one thread per expert walks
// through them and notes where rows come from, rows are fetched element by element, and all ranks
// meet again.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kBlocks = 64, kMaxPer = 16;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__device__ std::int32_t* Choices(const Args& args) {
  return reinterpret_cast<std::int32_t*>(args.scratch + 256);
}

__global__ void Gather(Args args) {
  const std::int64_t each = args.tokens * args.topk;
  for (int i = threadIdx.x; i < args.world * each; i += kThreads) {
    Choices(args)[i] = args.ids_peers[i / each][i % each];
  }
}

__global__ void Arrange(Args args) {
  const int e = threadIdx.x, all = static_cast<int>(args.world * args.tokens * args.topk);
  int counts[kMaxPer] = {}, row = 0;
  for (int i = 0; i < all; ++i) {
    const std::int64_t expert = Choices(args)[i] - args.rank * args.per;
    for (int n = 0; n < kMaxPer; ++n) counts[n] += expert == n;
  }
  for (int n = 0; n < kMaxPer; ++n) {
    if (n < e) row += (counts[n] + args.tile - 1) / args.tile * args.tile;
  }
  if (e == 0) args.starts[0] = 0;
  for (int i = 0; i < all; ++i) {
    if (Choices(args)[i] == args.rank * args.per + e) args.origin[row++] = i / args.topk;
  }
  while (row % args.tile != 0) args.origin[row++] = -1;
  args.starts[e + 1] = row;
}

__global__ void Fetch(Args args) {
  const std::int64_t count = args.starts[args.per] * args.hidden;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    const int from = args.origin[i / args.hidden],
              source = max(from, 0) / static_cast<int>(args.tokens);
    const auto* x = reinterpret_cast<const std::uint16_t*>(args.x_peers[source]);
    const std::int64_t token = max(from, 0) % args.tokens;
    reinterpret_cast<std::uint16_t*>(args.rows)[i] =
        from < 0 ? 0 : x[token * args.hidden + i % args.hidden];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<1, kThreads, 0, stream>>>(args);
  Arrange<<<1, args.per, 0, stream>>>(args);
  Fetch<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

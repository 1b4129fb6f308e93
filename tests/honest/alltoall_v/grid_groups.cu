// design: pull by one cooperative grid; cg::grid_group between phases, a tile of 32 lanes per row, cuda::atomic_ref counters for the meetings
//
// Every rank adds 1 to a counter at every peer when it enters (its counts are there then) and when
// it has read everything. The sum of all arrivals is world * call, because nobody enters call k + 1
// before all have arrived at the end of call k; so one table of counts suffices.
#include <cooperative_groups.h>

#include <cuda/atomic>

namespace cg = cooperative_groups;

constexpr int kCtas = 32;
constexpr int kThreads = 256;

struct Board {
  std::uint32_t call;                             // own: calls that have ended
  alignas(128) std::uint32_t entered;             // arrivals of all ranks, ever
  alignas(128) std::uint32_t left;                // the same at the end of calls
  alignas(128) std::int32_t counts[kMaxRanks][kMaxRanks];  // by source and destination
};
using SysRef = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>;

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

__device__ void Await(std::uint32_t& counter, std::uint32_t target) {
  SysRef ref(counter);
  while (static_cast<std::int32_t>(ref.load(cuda::memory_order_acquire) - target) < 0) {
  }
}

__global__ void __launch_bounds__(kThreads) Exchange(Args args) {
  __shared__ std::int64_t from_row[kMaxRanks], to_row[kMaxRanks + 1];
  const cg::grid_group grid = cg::this_grid();
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const int rank = args.rank, world = args.world;
  const unsigned int thread = block.thread_rank();
  Board* mine = BoardOf(args, rank);
  const std::uint32_t call = mine->call + 1, all = call * static_cast<std::uint32_t>(world);

  if (blockIdx.x == 0 && thread < world) {
    Board* theirs = BoardOf(args, thread);
    for (int d = 0; d < world; ++d) theirs->counts[rank][d] = args.counts[d];
    SysRef(theirs->entered).fetch_add(1, cuda::memory_order_release);
    Await(mine->entered, all);
  }
  grid.sync();

  if (thread < world) {
    std::int64_t from = 0;
    for (int d = 0; d < rank; ++d) from += mine->counts[thread][d];
    from_row[thread] = from;
  }
  if (thread == 0) {
    std::int64_t to = 0;
    for (int s = 0; s < world; ++s) {
      to_row[s] = to;
      to += mine->counts[s][rank];
      if (to > args.room) to = args.room;
    }
    to_row[world] = to;
  }
  block.sync();
  if (blockIdx.x == 0 && thread < world)
    args.arrived[thread] = static_cast<std::int32_t>(to_row[thread + 1] - to_row[thread]);

  // Ranks begin at different places, so that not all read the same peer first.
  const std::int64_t total = to_row[world], tiles = grid.size() / 32;
  for (std::int64_t n = grid.thread_rank() / 32; n < total; n += tiles) {
    const std::int64_t row = (n + total * rank / world) % total;
    int source = 0;
    while (row >= to_row[source + 1]) ++source;
    const uint4* from = reinterpret_cast<const uint4*>(args.in_peers[source]) +
                        (from_row[source] + row - to_row[source]) * args.quads;
    uint4* to = reinterpret_cast<uint4*>(args.out) + row * args.quads;
    for (std::int64_t q = tile.thread_rank(); q < args.quads; q += tile.size()) to[q] = from[q];
  }

  grid.sync();
  if (blockIdx.x == 0) {
    if (thread < world) {
      SysRef(BoardOf(args, thread)->left).fetch_add(1, cuda::memory_order_release);
      Await(mine->left, all);
    }
    if (thread == 0) mine->call = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Args copy = args;
  void* parameters[] = {&copy};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(Exchange), dim3(kCtas), dim3(kThreads),
                              parameters, 0, stream);
}

// design: a cluster of four blocks per peer; its first block meets the peer and makes the plan, the others take it out of its shared memory (DSMEM), all push rows in place
//
// The cluster barrier carries what the first block has acquired to the others before they write to
// the peer, and what they have written back to it before it releases the peer's flag.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kBlocks = 4;  // of a cluster
constexpr int kThreads = 256;

struct Board {
  std::uint64_t calls[kMaxRanks];                // own, by cluster: calls that have ended
  std::uint64_t done[kMaxRanks];                 // by source: the call whose rows are here
  std::uint64_t table[2][kMaxRanks][kMaxRanks];  // by source and destination: call, rows
};
struct Plan {
  std::int64_t from, to, rows;  // of this rank's rows for the peer, as far as there is room
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads) Push(Args args) {
  __shared__ Plan plan;
  __shared__ std::int64_t to_peer[kMaxRanks];
  const cg::cluster_group cluster = cg::this_cluster();
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const int peer = blockIdx.x / kBlocks, rank = args.rank, world = args.world;
  const bool first_block = cluster.block_rank() == 0;
  Board* mine = BoardOf(args, rank);
  std::uint64_t call = 0;

  if (first_block) {
    call = mine->calls[peer] + 1;
    const int lane = block.thread_rank();
    if (lane < world) {
      StoreReleaseSys(&BoardOf(args, peer)->table[call % 2][rank][lane],
                      call << 32 | static_cast<std::uint32_t>(args.counts[lane]));
      std::uint64_t value;
      do {
        value = LoadAcquireSys(&mine->table[call % 2][lane][peer]);
      } while (value >> 32 != call);
      to_peer[lane] = static_cast<std::uint32_t>(value);
    }
    block.sync();
    if (lane == 0) {
      plan = {};
      for (int i = 0; i < peer; ++i) plan.from += args.counts[i];
      for (int i = 0; i < rank; ++i) plan.to += to_peer[i];
      plan.rows = max(min(to_peer[rank], args.room - plan.to), 0l);
    }
    // The cluster of the own rank has the counts of all sources for it.
    if (peer == rank && lane == 0) {
      std::int64_t left = args.room;
      for (int i = 0; i < world; ++i) {
        const std::int64_t rows = min(to_peer[i], left);
        args.arrived[i] = static_cast<std::int32_t>(rows);
        left -= rows;
      }
    }
  }
  cluster.sync();

  const Plan* shared_plan = cluster.map_shared_rank(&plan, 0);
  const Plan own = *shared_plan;
  const int tiles = kBlocks * kThreads / 32;
  for (std::int64_t row = cluster.thread_rank() / 32; row < own.rows; row += tiles) {
    const uint4* from = reinterpret_cast<const uint4*>(args.in) + (own.from + row) * args.quads;
    uint4* to = reinterpret_cast<uint4*>(args.out_peers[peer]) + (own.to + row) * args.quads;
    for (std::int64_t q = tile.thread_rank(); q < args.quads; q += 32) to[q] = from[q];
  }

  cluster.sync();
  if (first_block && block.thread_rank() == 0) {
    StoreReleaseSys(&BoardOf(args, peer)->done[rank], call);
    while (LoadAcquireSys(&mine->done[peer]) < call) {
    }
    mine->calls[peer] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Push<<<args.world * kBlocks, kThreads, 0, stream>>>(args);
}

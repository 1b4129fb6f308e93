// design: clusters of eight blocks: block j plans what goes to rank j in its own shared memory and pushes it; for the sums every block reads the plans of the others by DSMEM
//
// Each of the clusters makes the whole plan and takes every kClusters-th row and token, so clusters
// need not meet. Dispatch does all but the meeting of ranks, which is combine's.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int kClusters = 6, kBlocks = 8, kThreads = 256, kWarps = kThreads / 32;

struct Board {
  std::uint64_t calls;                        // own: calls that have ended
  std::uint64_t table[kMaxRanks][kMaxRanks];  // by source and destination: call, rows
  std::uint64_t finished[kMaxRanks];          // by peer: the call it has finished
};
// Of one destination.
struct Plan {
  float gates[kThreads];          // by token
  std::int16_t before[kThreads];  // tokens ahead of it that go there too; -1: it does not go
  std::int32_t first;             // rows of lower ranks
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

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

__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads)
    PushAndSum(Args args, int per) {
  __shared__ Plan plan;
  __shared__ int by_warp[kWarps];
  __shared__ std::int32_t to_peer[kMaxRanks];
  const cg::cluster_group cluster = cg::this_cluster();
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const int peer = cluster.block_rank(), number = blockIdx.x / kBlocks;
  const int rank = args.rank, world = args.world, token = block.thread_rank();
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls + 1;

  if (peer < world) {
    bool goes = false;
    float gate = 0;
    if (token < args.tokens) {
      for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i) {
        if (args.expert_ids[i] / per != peer) continue;
        goes = true;
        gate = gate + args.weights[i];
      }
    }
    const std::uint32_t going = tile.ballot(goes);
    if (tile.thread_rank() == 0) by_warp[tile.meta_group_rank()] = __popc(going);
    block.sync();
    int before = __popc(going & ((1u << tile.thread_rank()) - 1));
    for (int w = 0; w < token / 32; ++w) before += by_warp[w];
    plan.gates[token] = gate;
    plan.before[token] = static_cast<std::int16_t>(goes ? before : -1);
    if (token < world) {
      std::uint64_t count = 0;
      for (int w = 0; w < kWarps; ++w) count += by_warp[w];
      if (number == 0)
        StoreReleaseSys(&BoardOf(args, token)->table[rank][peer], call << 32 | count);
      std::uint64_t value;
      do {
        value = LoadAcquireSys(&mine->table[token][peer]);
      } while (value >> 32 != call);
      to_peer[token] = static_cast<std::int32_t>(value);
      if (number == 0 && peer == rank) args.recv_rows[token] = to_peer[token];
    }
    block.sync();
    if (token == 0) {
      plan.first = 0;
      for (int s = 0; s < rank; ++s) plan.first += to_peer[s];
    }
  }
  // Every block of the cluster knows all plans behind this, and that all ranks have entered.
  cluster.sync();

  if (peer < world) {
    for (int t = tile.meta_group_rank(); t < args.tokens; t += kWarps) {
      if (plan.before[t] >= 0 && plan.before[t] % kClusters == number)
        PushToken(args, per, t, peer, plan.first + plan.before[t]);
    }
  }
  const int warps = kBlocks * kClusters * kWarps;
  for (int t = blockIdx.x * kWarps + tile.meta_group_rank(); t < args.tokens; t += warps) {
    for (std::int64_t q = tile.thread_rank(); q < args.quads; q += 32) {
      float4 sum = {};
      for (int r = 0; r < world; ++r) {
        const Plan* theirs = cluster.map_shared_rank(&plan, r);
        if (theirs->before[t] < 0) continue;
        const float gate = theirs->gates[t];
        const std::int64_t row = theirs->first + theirs->before[t];
        const float4 y = reinterpret_cast<const float4*>(args.y_peers[r])[row * args.quads + q];
        sum.x = fmaf(gate, y.x, sum.x);
        sum.y = fmaf(gate, y.y, sum.y);
        sum.z = fmaf(gate, y.z, sum.z);
        sum.w = fmaf(gate, y.w, sum.w);
      }
      reinterpret_cast<float4*>(args.out)[t * args.quads + q] = sum;
    }
  }
  cluster.sync();  // plans stay until all have read them
}

__global__ void Meet(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint64_t call = mine->calls + 1;
  StoreReleaseSys(&BoardOf(args, threadIdx.x)->finished[args.rank], call);
  while (LoadAcquireSys(&mine->finished[threadIdx.x]) < call) {
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls = call;
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  PushAndSum<<<kClusters * kBlocks, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  Meet<<<1, args.world, 0, stream>>>(args);
}

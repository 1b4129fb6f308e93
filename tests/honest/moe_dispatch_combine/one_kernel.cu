// design: one kernel does all of the call, enqueued by dispatch (combine enqueues nothing): cooperative-groups tiles take rows to push and tokens to sum up in any order, cuda::atomic_ref for tables and meetings, a last-block ticket
//
// `y` is there when its rank has entered, which its counts say; so answers may be fetched while
// rows are still on their way. The last block by ticket speaks for the rank. Nobody leaves before all
// have finished, hence one table suffices.
#include <cooperative_groups.h>

#include <cuda/atomic>

namespace cg = cooperative_groups;

constexpr int kCtas = 48, kThreads = 256, kWarps = kThreads / 32;

struct Board {
  std::uint64_t calls;                        // own: calls that have ended
  std::uint64_t table[kMaxRanks][kMaxRanks];  // by source and destination: call, rows
  std::uint64_t finished[kMaxRanks];          // by peer: the call it has finished
  std::uint32_t ended;                        // own: blocks that have ended in this call
};
using SysWord = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

// Which own tokens go to which rank, as bits of shared memory. A thread per token.
struct Routes {
  std::uint32_t going[kMaxRanks][kWarps];

  __device__ void Make(const Args& args, int per) {
    std::uint32_t ranks = 0;
    if (threadIdx.x < args.tokens) {
      for (std::int64_t i = 0; i < args.topk; ++i)
        ranks |= 1u << args.expert_ids[threadIdx.x * args.topk + i] / per;
    }
    for (int r = 0; r < args.world; ++r) {
      const std::uint32_t bits = __ballot_sync(~0u, ranks >> r & 1);
      if (threadIdx.x % 32 == 0) going[r][threadIdx.x / 32] = bits;
    }
  }
  __device__ bool Goes(int token, int r) const { return going[r][token / 32] >> token % 32 & 1; }
  __device__ int Before(int token, int r) const {
    int before = __popc(going[r][token / 32] & ((1u << token % 32) - 1));
    for (int w = 0; w < token / 32; ++w) before += __popc(going[r][w]);
    return before;
  }
  __device__ std::uint32_t Count(int r) const {
    std::uint32_t count = 0;
    for (int w = 0; w < kWarps; ++w) count += __popc(going[r][w]);
    return count;
  }
};

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

__device__ float GateOf(const Args& args, int per, std::int64_t token, int r) {
  float gate = 0;
  for (std::int64_t i = token * args.topk; i < (token + 1) * args.topk; ++i)
    if (args.expert_ids[i] / per == r) gate = gate + args.weights[i];
  return gate;
}
__device__ void AddTo(float4& sum, float gate, const float4& y) {
  sum.x = fmaf(gate, y.x, sum.x);
  sum.y = fmaf(gate, y.y, sum.y);
  sum.z = fmaf(gate, y.z, sum.z);
  sum.w = fmaf(gate, y.w, sum.w);
}

__global__ void __launch_bounds__(kThreads) Layer(Args args, int per) {
  __shared__ Routes routes;
  __shared__ std::int32_t counts[kMaxRanks][kMaxRanks];
  __shared__ bool last;
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<32>(block);
  const int rank = args.rank, world = args.world, tokens = static_cast<int>(args.tokens);
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls + 1;
  routes.Make(args, per);
  block.sync();
  const int a = threadIdx.x / kMaxRanks, b = threadIdx.x % kMaxRanks;
  if (a < world && b < world) {
    if (blockIdx.x == 0) {
      SysWord(BoardOf(args, a)->table[rank][b])
          .store(call << 32 | routes.Count(b), cuda::memory_order_release);
    }
    SysWord word(mine->table[a][b]);
    std::uint64_t value;
    do {
      value = word.load(cuda::memory_order_acquire);
    } while (value >> 32 != call);
    counts[a][b] = static_cast<std::int32_t>(value);
    if (blockIdx.x == 0 && b == rank) args.recv_rows[a] = counts[a][b];
  }
  block.sync();

  const int tiles = kCtas * kWarps;
  for (int unit = blockIdx.x * kWarps + tile.meta_group_rank(); unit < tokens * (world + 1);
       unit += tiles) {
    if (unit < tokens * world) {
      const int token = unit / world, peer = (unit + token + rank) % world;
      if (!routes.Goes(token, peer)) continue;
      std::int64_t slot = routes.Before(token, peer);
      for (int s = 0; s < rank; ++s) slot += counts[s][peer];
      PushToken(args, per, token, peer, slot);
    } else {
      const int token = unit - tokens * world;
      for (std::int64_t q = tile.thread_rank(); q < args.quads; q += tile.size()) {
        float4 sum = {};
        for (int r = 0; r < world; ++r) {
          if (!routes.Goes(token, r)) continue;
          std::int64_t row = routes.Before(token, r);
          for (int s = 0; s < rank; ++s) row += counts[s][r];
          AddTo(sum, GateOf(args, per, token, r),
                reinterpret_cast<const float4*>(args.y_peers[r])[row * args.quads + q]);
        }
        reinterpret_cast<float4*>(args.out)[token * args.quads + q] = sum;
      }
    }
  }

  __threadfence_system();
  block.sync();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device> ended(mine->ended);
    last = ended.fetch_add(1, cuda::memory_order_acq_rel) == kCtas - 1;
  }
  block.sync();
  if (!last) return;
  if (threadIdx.x < world) {
    SysWord(BoardOf(args, threadIdx.x)->finished[rank]).store(call, cuda::memory_order_release);
    SysWord peer(mine->finished[threadIdx.x]);
    while (peer.load(cuda::memory_order_acquire) < call) {
    }
  }
  if (threadIdx.x == 0) {
    mine->ended = 0;
    mine->calls = call;
  }
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  Layer<<<kCtas, kThreads, 0, stream>>>(args, ExpertsOfARank(args));
}

extern "C" void combine(const Args&, cudaStream_t) {}

// Blocks by receiver: blocks (k, part) send to the rank k places behind this one and hear of the
// rank k places before it, so that each waits for two ranks only.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kParts = 8, kThreads = 128;

struct Control {
  std::uint32_t calls[kMaxRanks][kParts];
  std::uint32_t entered[kMaxRanks][kParts];  // by the rank that this block sends to
  std::uint32_t done[kMaxRanks][kParts];     // by the rank that sends to this block
};

__device__ std::uint32_t Two(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

// Where a row of the trained layout goes: its first vector at ranks first_rank to last_rank.
struct Target {
  int first_rank, last_rank;
  std::int64_t row;  // of qkv, -1 for the norm weights

  __device__ Target(const Args& args, int row) : row(-1) {
    first_rank = 0, last_rank = args.world - 1;
    if (row == 0) return;
    const int queries = args.q * args.dim, keys = args.kv * args.dim;  // rows of a rank
    int rest = row - 1, kind = 0;                                      // queries, keys, values
    if (rest >= args.world * queries) {
      rest -= args.world * queries;
      kind = 1 + (rest >= args.world * keys);
      rest -= (kind - 1) * args.world * keys;
    }
    const int own = kind == 0 ? queries : keys;
    first_rank = last_rank = rest / own;
    this->row = rest % own + (kind > 0 ? queries : 0) + (kind == 2 ? args.kv : 0) * args.dim;
  }
};

__global__ void __launch_bounds__(kThreads) Refit(Args args) {
  const int k = blockIdx.x, part = blockIdx.y, rank = args.rank, world = args.world;
  const int receiver = (rank + k) % world, sender = (rank + world - k) % world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[receiver]);
  const std::uint32_t call = mine->calls[k][part] + 1;
  if (threadIdx.x == 0) {
    Control* source = reinterpret_cast<Control*>(args.scratch_peers[sender]);
    StoreReleaseSys(&source->entered[k][part], call);
    WaitAcquireSys(&mine->entered[k][part], call);
  }
  __syncthreads();
  const int width = args.cols / 8;
  const int total = (1 + world * (args.q + 2 * args.kv) * args.dim) * width;
  const int each = (total + world - 1) / world, begin = each * rank, end = min(begin + each, total);
  const float4* in = reinterpret_cast<const float4*>(args.in);
  for (int row = begin / width + part; row * width < end; row += kParts) {
    const Target target(args, row);
    if (receiver < target.first_rank || receiver > target.last_rank) continue;
    uint4* out = row == 0 ? reinterpret_cast<uint4*>(args.norm_peers[receiver])
                          : reinterpret_cast<uint4*>(args.qkv_peers[receiver]) + target.row * width;
    const int last = min(end, (row + 1) * width);
    for (int v = max(begin, row * width) + threadIdx.x; v < last; v += kThreads) {
      const float4 a = in[2 * (v - begin)], b = in[2 * (v - begin) + 1];
      out[v - row * width] = {Two(a.x, a.y), Two(a.z, a.w), Two(b.x, b.y), Two(b.z, b.w)};
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    if (part == 0) args.versions_peers[receiver][rank] = *args.version;
    StoreReleaseSys(&theirs->done[k][part], call);
    WaitAcquireSys(&mine->done[k][part], call);
    mine->calls[k][part] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Refit<<<dim3(args.world, kParts), kThreads, 0, stream>>>(args);
}

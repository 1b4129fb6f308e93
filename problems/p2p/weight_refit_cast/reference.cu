// One pass: a warp takes a row of this rank's shard, or the piece of it that is here, converts it
// in registers and stores it in place at the rank that serves the row; the row of norm weights goes
// to all ranks. A lane has four elements at a time and eight such vectors on their way.
//
// Outputs of a rank are open from its flag `entered` on, and it leaves when `done` of all ranks are
// there: block b of every rank exchanges flags with the blocks b of all others. The version is
// stored last, before the flag of block 0.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 8, kThreads = 512, kAhead = 8;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // own: that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it is in
  std::uint32_t done[kMaxBlocks][kMaxRanks];     // by peer: the last call whose rows are here
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
  const int block = blockIdx.x, rank = args.rank, lane = threadIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[lane % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (lane < args.world) StoreReleaseSys(&peer->entered[block][rank], call);  //@enter
  const std::uint32_t version = *args.version;
  // In vectors of four: a row, all, this rank's shard.
  const int width = args.cols / 4;
  const int total = (1 + args.world * (args.q + 2 * args.kv) * args.dim) * width;
  const int each = (total / 2 + args.world - 1) / args.world * 2;
  const int begin = each * rank, end = min(each * (rank + 1), total);
  const float4* in = reinterpret_cast<const float4*>(args.in);
  const int warps = gridDim.x * kThreads / 32, warp = (block * kThreads + threadIdx.x) / 32;
  if (lane < args.world) WaitAcquireSys(&mine->entered[block][lane], call);  //@entered
  __syncthreads();                                                           //@open
  for (int row = begin / width + warp; row * width < end; row += warps) {
    const Target target(args, row);
    const int from = max(begin, row * width), to = min(end, (row + 1) * width);
    for (int first = from + lane % 32; first < to; first += 32 * kAhead) {
      float4 x[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (first + 32 * k < to) x[k] = in[first + 32 * k - begin];
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int v = first + 32 * k;
        if (v >= to) break;
        const uint2 packed = {Two(x[k].x, x[k].y), Two(x[k].z, x[k].w)};
        for (int r = target.first_rank; r <= target.last_rank; ++r) {
          void* out = row == 0 ? args.norm_peers[r] : args.qkv_peers[r];
          const std::int64_t shift = (row == 0 ? 0 : target.row - row) * width;
          reinterpret_cast<uint2*>(out)[v + shift] = packed;
        }
      }
    }
  }
  __syncthreads();  //@sent
  if (lane < args.world) {
    if (block == 0) args.versions_peers[lane][rank] = version;  //@stamp
    StoreReleaseSys(&peer->done[block][rank], call);            //@publish
    WaitAcquireSys(&mine->done[block][lane], call);             //@wait
  }
  if (lane == 0) mine->calls[block] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t rows = (args.q + 2 * args.kv) * args.dim + 1;
  const std::int64_t needed = (rows + kThreads / 32 - 1) / (kThreads / 32);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Refit<<<blocks, kThreads, 0, stream>>>(args);
}

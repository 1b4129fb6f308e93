// By vectors instead of rows: a thread finds the place of each of its vectors for itself. Flags are
// exchanged by one block, which the others hear through counters of their own device.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t entered[kMaxRanks], done[kMaxRanks];
  std::uint32_t opened, stored;  // own: calls that all are in; blocks that are done, of all calls
};

// Element e of the flat parameters: calls put(rank, where) for all ranks that serve it, where < 0
// for norm weights.
template <class F>
__device__ void Each(const Args& args, std::int64_t e, F put) {
  const std::int64_t queries = args.q * args.dim * args.cols, keys = args.kv * args.dim * args.cols;
  if (e < args.cols) {
    for (int r = 0; r < args.world; ++r) put(r, e - args.cols);
    return;
  }
  e -= args.cols;
  std::int64_t shift = 0, own = queries;
  for (int kind = 0; kind < 2 && e >= args.world * own; ++kind) {
    e -= args.world * own;
    shift += own;
    own = keys;
  }
  put(static_cast<int>(e / own), shift + e % own);
}

__device__ std::uint32_t Two(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

__global__ void __launch_bounds__(kThreads) Refit(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  // All blocks have added to `stored` in the calls before, none before it has read it here.
  const std::uint32_t call = LoadRelaxedGpu(&mine->stored) / kBlocks + 1;
  __syncthreads();
  if (blockIdx.x == 0) {
    if (threadIdx.x < args.world) {
      StoreReleaseSys(&peer->entered[args.rank], call);
      WaitAcquireSys(&mine->entered[threadIdx.x], call);
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseSys(&mine->opened, call);
  }
  if (threadIdx.x == 0) WaitAcquireSys(&mine->opened, call);
  __syncthreads();
  const std::int64_t total = (1 + args.world * (args.q + 2 * args.kv) * args.dim) * args.cols;
  const std::int64_t shard = (total + 8 * args.world - 1) / (8 * args.world) * 8;
  const std::int64_t begin = args.rank * shard, size = min(shard, total - begin);
  for (std::int64_t i = 8 * (blockIdx.x * kThreads + threadIdx.x); i < size;
       i += 8 * kBlocks * kThreads) {
    const float4* in = reinterpret_cast<const float4*>(args.in + i);
    const float4 a = in[0], b = in[1];
    const uint4 packed = {Two(a.x, a.y), Two(a.z, a.w), Two(b.x, b.y), Two(b.z, b.w)};
    Each(args, begin + i, [&](int r, std::int64_t where) {
      void* out = where < 0 ? args.norm_peers[r] : args.qkv_peers[r];
      static_cast<uint4*>(out)[(where < 0 ? where + args.cols : where) / 8] = packed;
    });
  }
  __syncthreads();
  if (threadIdx.x == 0) AddReleaseSys(&mine->stored, 1u);
  if (blockIdx.x > 0) return;
  if (threadIdx.x == 0) WaitAcquireSys(&mine->stored, call * kBlocks);
  __syncthreads();
  if (threadIdx.x < args.world) {
    args.versions_peers[threadIdx.x][args.rank] = *args.version;
    StoreReleaseSys(&peer->done[args.rank], call);
    WaitAcquireSys(&mine->done[threadIdx.x], call);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Refit<<<kBlocks, kThreads, 0, stream>>>(args);
}

// Three kernels: wait until all ranks are in the call, convert and store element by element, tell
// all that everything is there.
#include <allranks/flags.h>
#include <allranks/numbers.h>
using namespace allranks;

struct Control {
  std::uint32_t call, entered[kMaxRanks], done[kMaxRanks];
};
constexpr int kBlocks = 32, kThreads = 256;

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

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

__global__ void Enter(Args args) {
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t call = mine->call + 1;
  StoreReleaseSys(&ControlOf(args, threadIdx.x)->entered[args.rank], call);
  WaitAcquireSys(&mine->entered[threadIdx.x], call);
  __syncwarp((1u << args.world) - 1);
  if (threadIdx.x == 0) mine->call = call;
}

__global__ void Convert(Args args) {
  const std::int64_t total = (1 + args.world * (args.q + 2 * args.kv) * args.dim) * args.cols;
  const std::int64_t shard = (total + 8 * args.world - 1) / (8 * args.world) * 8;
  const std::int64_t begin = args.rank * shard;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < shard && begin + i < total;
       i += kBlocks * kThreads) {
    const std::uint16_t value = Number<__nv_bfloat16>::FromFloat(args.in[i]);
    Each(args, begin + i, [&](int r, std::int64_t where) {
      void* out = where < 0 ? args.norm_peers[r] : args.qkv_peers[r];
      static_cast<std::uint16_t*>(out)[where < 0 ? where + args.cols : where] = value;
    });
  }
}

__global__ void Leave(Args args) {
  Control* mine = ControlOf(args, args.rank);
  args.versions_peers[threadIdx.x][args.rank] = *args.version;
  StoreReleaseSys(&ControlOf(args, threadIdx.x)->done[args.rank], mine->call);
  WaitAcquireSys(&mine->done[threadIdx.x], mine->call);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Enter<<<1, args.world, 0, stream>>>(args);
  Convert<<<kBlocks, kThreads, 0, stream>>>(args);
  Leave<<<1, args.world, 0, stream>>>(args);
}

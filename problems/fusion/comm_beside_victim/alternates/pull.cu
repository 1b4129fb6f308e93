// One kernel of two kinds of blocks: the first two read the shards of all ranks, the others
// multiply. A shard is open once its owner has entered, and the owner leaves when all have read it.
// Nobody writes to memory of peers but flags.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kBlocks = 4, kPulling = 2, kThreads = 512, kAtOnce = 8;

struct Board {
  std::uint32_t calls[kPulling];
  std::uint32_t entered[kPulling][kMaxRanks], read[kPulling][kMaxRanks];  // by peer: the last call
};

// The own shard first, then those of the ranks behind it, so that ranks read from different ones.
__device__ void Pull(const Args& args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int block = blockIdx.x, peer = (args.rank + threadIdx.x) % args.world;
  const bool talks = threadIdx.x < args.world;
  Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (talks) {
    StoreReleaseSys(&theirs->entered[block][args.rank], call);
    WaitAcquireSys(&mine->entered[block][peer], call);
  }
  __syncthreads();  //@open
  const std::int64_t vectors = args.n / 4, stride = kPulling * kThreads;
  for (int step = 0; step < args.world; ++step) {
    const int source = (args.rank + step) % args.world;
    const uint4* from = reinterpret_cast<const uint4*>(args.shard_peers[source]);
    uint4* to = reinterpret_cast<uint4*>(args.next) + source * vectors;
    for (std::int64_t i = block * kThreads + threadIdx.x; i < vectors; i += kAtOnce * stride) {
      uint4 v[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u * stride < vectors) v[u] = from[i + u * stride];
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u * stride < vectors) to[i + u * stride] = v[u];
      }
    }
  }
  __syncthreads();  //@read
  if (talks) {
    StoreReleaseSys(&theirs->read[block][args.rank], call);  //@tell
    WaitAcquireSys(&mine->read[block][peer], call);          //@stay
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

__global__ void __launch_bounds__(kThreads) PullMultiply(Args args) {
  __shared__ TileStage stage;
  if (blockIdx.x < kPulling) {
    Pull(args);
  } else if (threadIdx.x < kTileThreads) {
    TileProduct product(stage);
    for (std::int64_t t = blockIdx.x - kPulling; t < args.tiles * args.cols;
         t += kBlocks - kPulling) {
      MultiplyTile(args, product, t);
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  PullMultiply<<<kBlocks, kThreads, 0, stream>>>(args);
}

// Two branches of the graph: the given kernel, and a gather whose many threads store vectors into
// all outputs. A vector is loaded once.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 4, kThreads = 512, kAtOnce = 4;

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks][kMaxRanks];  // 2 * call - 1: has entered; 2 * call: has stored
};

__device__ void Meet(const Args& args, std::uint32_t step) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Board* mine = reinterpret_cast<Board*>(args.scratch);
    Board* theirs = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&theirs->steps[blockIdx.x][args.rank], step);
    WaitAcquireSys(&mine->steps[blockIdx.x][threadIdx.x], step);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t vectors = args.n / 4, stride = gridDim.x * kThreads;
  const uint4* shard = reinterpret_cast<const uint4*>(args.shard);
  Meet(args, 2 * call - 1);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < vectors; i += kAtOnce * stride) {
    uint4 v[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (i + u * stride < vectors) v[u] = shard[i + u * stride];
    }
    for (int step = 0; step < args.world; ++step) {
      const int to = (args.rank + step) % args.world;
      uint4* next = reinterpret_cast<uint4*>(args.next_peers[to]) + args.rank * vectors;
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u * stride < vectors) next[i + u * stride] = v[u];
      }
    }
  }
  Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

// Of the four blocks those that gather, so that both branches take about the same time: one block
// moves about 100 bytes per ns, and takes about 300 ns per piece of a tile and as many per tile.
int Gathering(const Args& args) {
  int best = 1;
  const auto time = [&](int n) {
    const double move = 0.01 * 4 * args.n * (args.world + 1) / n + 4500;
    const double multiply = 300.0 * args.tiles * args.cols * (args.depth + 1) / (kMaxBlocks - n);
    return move > multiply ? move : multiply;
  };
  for (int n = 2; n < kMaxBlocks; ++n) {
    if (time(n) < time(best)) best = n;
  }
  return best;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaStream_t side;
  cudaEvent_t fork, join;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(side, fork, 0);
  const int gathering = Gathering(args), multiplying = kMaxBlocks - gathering;
  Gather<<<gathering, kThreads, 0, stream>>>(args);
  Multiply<<<multiplying, kTileThreads, 0, side>>>(args);
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(stream, join, 0);
}

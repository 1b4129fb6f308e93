#include <allranks/flags.h>

// Every block both sends and sums, with one slot per source: it pushes a chunk to the owners,
// waits for its own, sums and spreads it, and waits until the owners have done so, too.
using namespace allranks;
constexpr int kMaxBlocks = 16, kThreads = 64, kData = 16384;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t steps[kMaxBlocks][kMaxRanks];  // by peer: twice the number of its last chunk
};

__device__ void Meet(const Args& args, std::uint32_t step) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* mine = reinterpret_cast<Control*>(args.scratch);
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->steps[blockIdx.x][args.rank], step);
    WaitAcquireSys(&mine->steps[blockIdx.x][threadIdx.x], step);
  }
  __syncthreads();
}

__device__ float4* Slot(const Args& args, int at, int from) {
  return reinterpret_cast<float4*>(args.scratch_peers[at] + kData) +
         (blockIdx.x * kMaxRanks + from) * kThreads + threadIdx.x;
}

__global__ void AllReduce(Args args) {
  const int b = blockIdx.x, t = threadIdx.x, world = args.world, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int vectors = args.n / 4, shard = (vectors + 2 * world - 1) / (2 * world) * 2;
  const int wave = gridDim.x * kThreads, chunks = (shard + wave - 1) / wave;
  std::uint32_t step = 2 * chunks * mine->calls[b];
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int i = chunk * wave + b * kThreads + t, at = rank * shard + i;
    for (int r = 0; r < world; ++r) {
      if (i >= shard || r * shard + i >= vectors) continue;
      *Slot(args, r, rank) = reinterpret_cast<const float4*>(args.in)[r * shard + i];
    }
    Meet(args, ++step);
    if (i < shard && at < vectors) {
      const int turn = i < shard / 2 ? 1 : world - 1;
      float4 sum = *Slot(args, rank, (rank + turn) % world);
      for (int k = 2; k <= world; ++k) {
        const float4 x = *Slot(args, rank, (rank + k * turn) % world);
        sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
      }
      for (int r = 0; r < world; ++r) reinterpret_cast<float4*>(args.out_peers[r])[at] = sum;
    }
    Meet(args, ++step);
  }
  if (t == 0) ++mine->calls[b];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int shard = (args.n / 4 + 2 * args.world - 1) / (2 * args.world) * 2;
  const int needed = (shard + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}

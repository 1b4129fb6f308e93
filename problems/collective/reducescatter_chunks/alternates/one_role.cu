#include <allranks/flags.h>

// Every block both sends and sums: it pushes chunk k + 1 before it waits for chunk k, so that one
// is on the wire while the other is summed. Slots and semaphores are those of block b on all ranks.
using namespace allranks;
constexpr int kMaxBlocks = 8, kThreads = 64, kData = 16384;
constexpr std::uint32_t kSlots = 2;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t sent[kMaxBlocks][kMaxRanks];  // by source: chunks that have arrived
  std::uint32_t room[kMaxBlocks][kMaxRanks];  // by destination: chunks that were read
};

__device__ float4* Slot(const Args& args, int at, int from, std::uint32_t seq) {
  const int slot = (blockIdx.x * kMaxRanks + from) * kSlots + seq % kSlots;
  return reinterpret_cast<float4*>(args.scratch_peers[at] + kData) + slot * kThreads + threadIdx.x;
}

__global__ void ReduceScatter(Args args) {
  const int b = blockIdx.x, t = threadIdx.x, world = args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  const float4* in = reinterpret_cast<const float4*>(args.in);
  const int vectors = args.n / 4, shard = (vectors + world - 1) / world;
  const int wave = gridDim.x * kThreads, chunks = (shard + wave - 1) / wave;
  const std::uint32_t call = mine->calls[b];
  for (int step = 0; step <= chunks; ++step) {
    if (step < chunks) {
      const std::uint32_t seq = call * chunks + step;
      const int i = step * wave + b * kThreads + t;
      if (t < world && t != args.rank) WaitAcquireSys(&mine->room[b][t], seq + 1 - kSlots);
      __syncthreads();
      for (int r = 0; r < world; ++r) {
        const int at = r * shard + i;
        if (i < shard && at < vectors) *Slot(args, r, args.rank, seq) = in[at];
      }
      __syncthreads();
      if (t < world) StoreReleaseSys(&peer->sent[b][args.rank], seq + 1);
    }
    if (step == 0) continue;
    const std::uint32_t seq = call * chunks + step - 1;
    const int i = (step - 1) * wave + b * kThreads + t;
    if (t < world) WaitAcquireSys(&mine->sent[b][t], seq + 1);
    __syncthreads();
    if (i < shard && args.rank * shard + i < vectors) {
      float4 sum = *Slot(args, args.rank, (args.rank + 1) % world, seq);
      for (int k = 2; k <= world; ++k) {
        const float4 x = *Slot(args, args.rank, (args.rank + k) % world, seq);
        sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
      }
      reinterpret_cast<float4*>(args.out)[i] = sum;
    }
    __syncthreads();
    if (t < world) StoreReleaseSys(&peer->room[b][args.rank], seq + 1);
  }
  if (t == 0) mine->calls[b] = call + 1;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int shard = (args.n / 4 + args.world - 1) / args.world;
  const int needed = (shard + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  ReduceScatter<<<blocks, kThreads, 0, stream>>>(args);
}

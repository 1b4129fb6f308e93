#include <allranks/flags.h>

// A ring: the partial sums of shard q begin at rank q + 1 and go from rank to rank until they
// reach their owner. Block b has its chunks of every shard; in step s a rank handles shard
// rank - 1 - s. Each step of each block has one slot with a pair of semaphores.
using namespace allranks;
constexpr int kMaxBlocks = 16, kThreads = 64, kData = 16384;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t sent[kMaxBlocks][kMaxRanks];  // by step: chunks that came from the rank before
  std::uint32_t room[kMaxBlocks][kMaxRanks];  // chunks that the rank behind has read
};

__global__ void ReduceScatter(Args args) {
  const int b = blockIdx.x, t = threadIdx.x, world = args.world, rank = args.rank;
  const int after = (rank + 1) % world, before = (rank + world - 1) % world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* next = reinterpret_cast<Control*>(args.scratch_peers[after]);
  Control* previous = reinterpret_cast<Control*>(args.scratch_peers[before]);
  const int vectors = args.n / 4, shard = (vectors + world - 1) / world;
  const int wave = gridDim.x * kThreads, chunks = (shard + wave - 1) / wave;
  const std::uint32_t call = mine->calls[b];
  float4* here = reinterpret_cast<float4*>(args.scratch + kData) + b * kMaxRanks * kThreads + t;
  float4* there =
      reinterpret_cast<float4*>(args.scratch_peers[after] + kData) + b * kMaxRanks * kThreads + t;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const std::uint32_t seq = call * chunks + chunk + 1;
    const int i = chunk * wave + b * kThreads + t;
    for (int step = 0; step < world; ++step) {
      const int at = (rank + 2 * world - 1 - step) % world * shard + i;
      const bool valid = i < shard && at < vectors;
      float4 sum = {};
      if (valid) sum = reinterpret_cast<const float4*>(args.in)[at];
      if (step > 0) {
        if (t == 0) WaitAcquireSys(&mine->sent[b][step - 1], seq);
        __syncthreads();
        const float4 x = valid ? here[(step - 1) * kThreads] : float4{};
        sum = {x.x + sum.x, x.y + sum.y, x.z + sum.z, x.w + sum.w};
        __syncthreads();
        if (t == 0) StoreReleaseSys(&previous->room[b][step - 1], seq);
      }
      if (step + 1 == world) {
        if (valid) reinterpret_cast<float4*>(args.out)[i] = sum;
        break;
      }
      if (t == 0) WaitAcquireSys(&mine->room[b][step], seq - 1);
      __syncthreads();
      if (valid) there[step * kThreads] = sum;
      __syncthreads();
      if (t == 0) StoreReleaseSys(&next->sent[b][step], seq);
    }
  }
  __syncthreads();
  if (t == 0) mine->calls[b] = call + 1;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int shard = (args.n / 4 + args.world - 1) / args.world;
  const int needed = (shard + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  ReduceScatter<<<blocks, kThreads, 0, stream>>>(args);
}

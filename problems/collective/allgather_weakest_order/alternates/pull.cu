// By pulling: every rank stages its shard in its own memory and releases a flag to each peer, which
// acquires it and reads the shard from here. Two stages in turn: a rank stages into the first again
// in call k + 2, after it has acquired the flags of call k + 1, which come after the reads of k.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t staged[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) AllGather(Args args) {
  const int block = blockIdx.x, world = args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  const std::int64_t pairs = args.n / 2, first = block * kThreads + threadIdx.x;
  const std::int64_t stride = gridDim.x * kThreads, stage = 4096 + call % 2 * args.n * 4;
  uint2* staged = reinterpret_cast<uint2*>(args.scratch + stage);
  for (std::int64_t i = first; i < pairs; i += stride) {
    staged[i] = reinterpret_cast<const uint2*>(args.in)[i];
  }
  __syncthreads();
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->staged[block][args.rank], call);
    WaitAcquireSys(&mine->staged[block][threadIdx.x], call);
  }
  __syncthreads();
  for (std::int64_t i = first; i < pairs; i += stride) {
    for (int step = 0; step < world; ++step) {
      const int r = (args.rank + step) % world;
      reinterpret_cast<uint2*>(args.out)[r * pairs + i] =
          reinterpret_cast<const uint2*>(args.scratch_peers[r] + stage)[i];
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 2 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllGather<<<blocks, kThreads, 0, stream>>>(args);
}

#include <allranks/flags.h>

// Rows are loaded from the owners' shards themselves, between two meetings of block b with the
// blocks b of all peers: when all have entered the call, and when all have read.

using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 256, kLanes = 8;  // lanes that copy one row

struct Control {
  std::uint32_t meetings[kMaxBlocks];
  std::uint32_t reached[kMaxBlocks][kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[blockIdx.x][args.rank], meeting);
    WaitAcquireSys(&mine->reached[blockIdx.x][threadIdx.x], meeting);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) LookUp(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t before = mine->meetings[blockIdx.x];
  const int quads = args.quads, vocab = args.vocab, per = (vocab + args.world - 1) / args.world;
  Meet(args, before + 1);
  for (int i = (blockIdx.x * kThreads + threadIdx.x) / kLanes; i < args.queries;
       i += gridDim.x * kThreads / kLanes) {
    const int id = args.ids[i];
    uint4* to = reinterpret_cast<uint4*>(args.out) + i * quads;
    for (int at = threadIdx.x % kLanes; at < quads; at += kLanes) {
      if (id < vocab) {
        const uint4* shard = reinterpret_cast<const uint4*>(args.shard_peers[id / per]);
        to[at] = shard[id % per * quads + at];
      } else {
        to[at] = make_uint4(0, 0, 0, 0);
      }
    }
  }
  Meet(args, before + 2);
  if (threadIdx.x == 0) mine->meetings[blockIdx.x] = before + 2;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.queries * kLanes + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  LookUp<<<blocks, kThreads, 0, stream>>>(args);
}

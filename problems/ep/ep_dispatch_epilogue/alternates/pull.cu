// By reading: once all ranks are inside the call, every block goes through everybody's choices of
// this rank's experts, with a bit per token in shared memory, and fetches its rows from the peers'
// `x`. Nobody leaves before all have read.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 8, kThreads = 128, kMaxPer = 16, kMasks = 4;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t entered[kBlocks][kMaxRanks];  // by peer: the last call that it has entered
  std::uint32_t read[kBlocks][kMaxRanks];     // by peer: the last call in which it has read
};

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ std::uint32_t chosen[kMaxPer][kMaxRanks * kMasks];  // in the order of the lists
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int block = blockIdx.x, world = args.world, rank = args.rank;
  const std::uint32_t call = mine->calls[block] + 1;
  const int tokens = static_cast<int>(args.tokens), per = static_cast<int>(args.per);
  const int topk = static_cast<int>(args.topk), vectors = static_cast<int>(args.hidden / 8);
  const int tile = static_cast<int>(args.tile), masks = world * kMasks, lane = threadIdx.x % 32;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % world]);
  for (int i = threadIdx.x; i < per * masks; i += kThreads) chosen[i / masks][i % masks] = 0;
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->entered[block][rank], call);
    WaitAcquireSys(&mine->entered[block][threadIdx.x], call);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < world * tokens * topk; i += kThreads) {
    const int source = i / (tokens * topk), token = i / topk % tokens;
    const int e = args.ids_peers[source][i % (tokens * topk)] - rank * per;
    if (e < 0 || e >= per) continue;
    atomicOr(&chosen[e][source * kMasks + token / 32], 1u << token % 32);
  }
  __syncthreads();
  // Warps take rows in turn; every warp walks through all masks.
  const int warp = block * (kThreads / 32) + threadIdx.x / 32, warps = kBlocks * (kThreads / 32);
  int row = 0;
  const auto put = [&](int source, int token) {
    if (row % warps == warp) {
      uint4* to = reinterpret_cast<uint4*>(args.rows) + static_cast<std::int64_t>(row) * vectors;
      if (lane == 0) args.origin[row] = token < 0 ? -1 : source * tokens + token;
#pragma unroll 4
      for (int v = lane; v < vectors; v += 32) {
        const uint4* x = reinterpret_cast<const uint4*>(args.x_peers[source]);
        to[v] = token < 0 ? uint4{} : x[token * vectors + v];
      }
    }
    ++row;
  };
  if (block == 0 && threadIdx.x == 0) args.starts[0] = 0;
  for (int e = 0; e < per; ++e) {
    for (int m = 0; m < masks; ++m) {
      for (std::uint32_t mask = chosen[e][m]; mask != 0; mask &= mask - 1) {
        put(m / kMasks, m % kMasks * 32 + __ffs(mask) - 1);
      }
    }
    while (row % tile != 0) put(0, -1);
    if (block == 0 && threadIdx.x == 0) args.starts[e + 1] = row;
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->read[block][rank], call);
    WaitAcquireSys(&mine->read[block][threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<kBlocks, kThreads, 0, stream>>>(args);
}

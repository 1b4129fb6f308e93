#include <allranks/flags.h>

// By pulling, with flags of its own for each step: a rank stages its input in its own memory, tells
// all peers, and reads theirs. The two steps have separate flags and separate counts of calls, one
// for each block. A staged input may be overwritten in the next call: its readers have told of
// the other step since, and so are done.

constexpr int kMaxBlocks = 16, kThreads = 256;

struct Board {
  std::uint32_t calls[2][kMaxBlocks];               // own, by step and block
  std::uint32_t arrived[2][kMaxBlocks][kMaxRanks];  // by step, block and rank: its last call
};

__device__ const uint4* Staged(const Args& args, int rank, int step) {
  return reinterpret_cast<const uint4*>(args.scratch_peers[rank] + 16384) + step * (args.n / 4);
}

__global__ void __launch_bounds__(kThreads) Pull(Args args, int step) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[step][blockIdx.x] + 1;
  const std::int64_t vectors = (step == 0 ? args.n : args.m) / 4, stride = gridDim.x * kThreads;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  const uint4* in = reinterpret_cast<const uint4*>(step == 0 ? args.a : args.b);
  for (std::int64_t i = first; i < vectors; i += stride) {
    const_cast<uint4*>(Staged(args, args.rank, step))[i] = in[i];
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[step][blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->arrived[step][blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  for (std::int64_t i = first; i < vectors; i += stride) {
    uint4 v[kMaxRanks], total = {0, 0, 0, 0};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world) v[r] = Staged(args, r, step)[i];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world) break;
      total = {total.x + v[r].x, total.y + v[r].y, total.z + v[r].z, total.w + v[r].w};
      if (step == 0) reinterpret_cast<uint4*>(args.all)[r * vectors + i] = v[r];
    }
    if (step == 1) reinterpret_cast<uint4*>(args.sum)[i] = total;
  }
  if (threadIdx.x == 0) mine->calls[step][blockIdx.x] = call;
}

static int Blocks(std::int64_t words) {
  const std::int64_t needed = (words / 4 + kThreads - 1) / kThreads;
  return static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
}

extern "C" void gather(const Args& args, cudaStream_t stream) {
  Pull<<<Blocks(args.n), kThreads, 0, stream>>>(args, 0);
}

extern "C" void reduce(const Args& args, cudaStream_t stream) {
  Pull<<<Blocks(args.m), kThreads, 0, stream>>>(args, 1);
}

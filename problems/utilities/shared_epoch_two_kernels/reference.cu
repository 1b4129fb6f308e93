#include <allranks/flags.h>

// Both steps push into slots at every rank, raise one flag per block and rank, and read the slots.
// They share the flags, though their grids differ: an epoch counts the steps of both kinds over all
// calls, and a flag holds the last epoch of its sender. The epoch is one word per kind: each kernel
// reads the word that the other one writes, so no block can read it too late.
//
// Slots exist once. Data of the next gather is sent when this rank's reduce is over, after flags of
// every peer's reduce, which it raised when its gather was over and had read its slots. The same
// holds for reduce.

constexpr int kMaxBlocks = 32, kThreads = 256;

struct Board {
  std::uint32_t gathered, reduced;               // own: the epoch of the last step of each kind
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by block and rank: its last epoch
};
static_assert(sizeof(Board) <= 16384);

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}

// At rank `at`: what rank r sends for each kind of step.
__device__ uint4* GatherSlots(const Args& args, int at, int r) {
  return reinterpret_cast<uint4*>(args.scratch_peers[at] + 16384) + r * (args.n / 4);
}
__device__ uint4* ReduceSlots(const Args& args, int at, int r) {
  const std::int64_t behind = args.world * (args.n / 4);
  return GatherSlots(args, at, 0) + behind + r * (args.m / 4);
}

// Blocks with the same number on all ranks deal with the same vectors, so they meet on their own.
__device__ void Meet(const Args& args, std::uint32_t epoch) {
  Board* mine = BoardOf(args, args.rank);
  __syncthreads();  //@before
  if (threadIdx.x < args.world) {
    Board* peer = BoardOf(args, threadIdx.x);
    allranks::StoreReleaseSys(&peer->arrived[blockIdx.x][args.rank], epoch);   //@publish
    allranks::WaitAcquireSys(&mine->arrived[blockIdx.x][threadIdx.x], epoch);  //@observe
  }
  __syncthreads();  //@after
}

__device__ int Turn(const Args& args, int step) {
  const int r = args.rank + step;
  return r < args.world ? r : r - args.world;
}

__global__ void __launch_bounds__(kThreads) Gather(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint32_t epoch = mine->reduced + 1;
  const std::int64_t vectors = args.n / 4, stride = gridDim.x * kThreads;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  uint4* out = reinterpret_cast<uint4*>(args.all);
  for (std::int64_t i = first; i < vectors; i += stride) {
    const uint4 own = reinterpret_cast<const uint4*>(args.a)[i];
    for (int step = 1; step < args.world; ++step) {
      const int to = Turn(args, step);
      GatherSlots(args, to, args.rank)[i] = own;
    }
    out[args.rank * vectors + i] = own;
  }
  Meet(args, epoch);
  for (std::int64_t i = first; i < vectors; i += stride) {
    uint4 v[kMaxRanks];
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {  // all on their way before the first is needed
      const int from = Turn(args, step);
      if (step < args.world) v[step] = GatherSlots(args, args.rank, from)[i];
    }
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step < args.world) out[Turn(args, step) * vectors + i] = v[step];
    }
  }
  if (first == 0) mine->gathered = epoch;  //@after_gather
}

__global__ void __launch_bounds__(kThreads) Reduce(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const std::uint32_t epoch = mine->gathered + 1;
  const std::int64_t vectors = args.m / 4, stride = gridDim.x * kThreads;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  const uint4* in = reinterpret_cast<const uint4*>(args.b);
  for (std::int64_t i = first; i < vectors; i += stride) {
    const uint4 own = in[i];
    for (int step = 1; step < args.world; ++step) {
      ReduceSlots(args, Turn(args, step), args.rank)[i] = own;
    }
  }
  Meet(args, epoch);
  for (std::int64_t i = first; i < vectors; i += stride) {
    const uint4 own = in[i];
    uint4 total = own;
#pragma unroll
    for (int step = 1; step < kMaxRanks; ++step) {
      if (step >= args.world) break;
      const uint4 v = ReduceSlots(args, args.rank, Turn(args, step))[i];
      total = {total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w};
    }
    reinterpret_cast<uint4*>(args.sum)[i] = total;
  }
  if (first == 0) mine->reduced = epoch;  //@after_reduce
}

static int Blocks(std::int64_t words) {
  const std::int64_t needed = (words / 4 + kThreads - 1) / kThreads;
  return static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
}

extern "C" void gather(const Args& args, cudaStream_t stream) {
  Gather<<<Blocks(args.n), kThreads, 0, stream>>>(args);
}

extern "C" void reduce(const Args& args, cudaStream_t stream) {
  Reduce<<<Blocks(args.m), kThreads, 0, stream>>>(args);
}

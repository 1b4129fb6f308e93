// Every rank shows its old slots in its own memory, and ranks fetch what the plan gives them. A
// block has the same vectors of all slots on every rank. Showing needs no plan; it needs that all
// peers have fetched what was shown in the call before, which they report when they enter.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256, kMaxSlots = 64, kData = 65536;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that its block is in
  std::uint32_t shown[kMaxBlocks][kMaxRanks];    // by peer: the last call whose slots are shown
  std::int32_t plan[kMaxRanks * kMaxSlots];      // at rank 0
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

__global__ void __launch_bounds__(kThreads) Rebalance(Args args) {
  const int block = blockIdx.x, t = threadIdx.x, rank = args.rank;
  const std::int64_t slots = args.slots, quads = args.quads, stride = gridDim.x * kThreads;
  const std::int64_t first = block * kThreads + t;
  Control* mine = ControlOf(args, rank);
  const std::uint32_t call = mine->calls[block] + 1;
  if (t < args.world) {
    StoreReleaseSys(&ControlOf(args, t)->entered[block][rank], call);
    // Block 0 of rank 0 overwrites the plan, which all blocks of all ranks have read.
    for (int b = 0; b < (rank == 0 && block == 0 ? gridDim.x : 1); ++b) {
      WaitAcquireSys(&mine->entered[rank == 0 && block == 0 ? b : block][t], call);
    }
  }
  __syncthreads();
  if (rank == 0 && block == 0) {
    for (int n = t; n < args.world * slots; n += kThreads) mine->plan[n] = args.plan[n];
  }
  uint4* shown = reinterpret_cast<uint4*>(args.scratch + kData);
  for (std::int64_t i = 0; i < slots; ++i) {
    for (std::int64_t q = first; q < quads; q += stride) {
      shown[i * quads + q] = reinterpret_cast<const uint4*>(args.w)[i * quads + q];
    }
  }
  __syncthreads();
  if (t < args.world) {
    StoreReleaseSys(&ControlOf(args, t)->shown[block][rank], call);
    WaitAcquireSys(&mine->shown[block][t], call);
    if (t == 0) WaitAcquireSys(&mine->shown[0][0], call);  // the plan
  }
  __syncthreads();
  __shared__ int plan[kMaxSlots];
  if (t < slots) plan[t] = ControlOf(args, 0)->plan[rank * slots + t];
  __syncthreads();
  for (std::int64_t q = first; q < quads; q += stride) {
#pragma unroll 8
    for (std::int64_t j = 0; j < slots; ++j) {
      const std::uint8_t* from = args.scratch_peers[plan[j] / slots] + kData;
      const std::int64_t at = plan[j] % slots * quads + q;
      reinterpret_cast<uint4*>(args.out)[j * quads + q] = reinterpret_cast<const uint4*>(from)[at];
    }
  }
  if (t == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.quads + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  Rebalance<<<blocks, kThreads, 0, stream>>>(args);
}

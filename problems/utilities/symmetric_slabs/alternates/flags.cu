#include <allranks/flags.h>

// What is wanted goes to all ranks as plain data, with one flag per block and rank behind it; every
// rank runs all heaps. Slots exist twice, by turns: a flag of call k + 1 says that its sender has
// ended call k.

constexpr int kThreads = 64, kMaxBlocks = 64;

struct Board {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by block and rank: its last call
};

__device__ uint4* Slots(const Args& args, int rank, std::uint32_t call, int from) {
  uint4* slots = reinterpret_cast<uint4*>(args.scratch_peers[rank] + 65536);
  return slots + (call % 2 * args.world + from) * args.heaps;
}

// The requests of one heap, from the sums of what is wanted.
__device__ void Run(const std::uint8_t* sums, std::uint8_t* offsets) {
  std::uint32_t free = ~0u, ending[32] = {};
  for (int i = 0; i < 16; ++i) {
    free |= ending[i];
    const std::uint32_t need = 1 + sums[i] % 8, slabs = (1u << need) - 1;
    std::uint32_t offset = 0;
    while (offset + need <= 32 && (free >> offset & slabs) != slabs) ++offset;
    if (offset + need > 32) {
      offsets[i] = 255;
      continue;
    }
    offsets[i] = static_cast<std::uint8_t>(offset);
    free &= ~(slabs << offset);
    ending[i + 1 + sums[i] / 8 % 16] |= slabs << offset;
  }
}

__global__ void __launch_bounds__(kThreads) Allocate(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  for (std::int64_t h = first; h < args.heaps; h += stride) {
    const uint4 own = reinterpret_cast<const uint4*>(args.want)[h];
    for (int r = 0; r < args.world; ++r) Slots(args, r, call, args.rank)[h] = own;
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[blockIdx.x][args.rank], call);
    allranks::WaitAcquireSys(&mine->arrived[blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
  for (std::int64_t h = first; h < args.heaps; h += stride) {
    alignas(16) std::uint8_t sums[16] = {}, offsets[16];
    for (int r = 0; r < args.world; ++r) {
      const uint4 want = Slots(args, args.rank, call, r)[h];
      for (int i = 0; i < 16; ++i) sums[i] += reinterpret_cast<const std::uint8_t*>(&want)[i];
    }
    Run(sums, offsets);
    reinterpret_cast<uint4*>(args.offset)[h] = *reinterpret_cast<const uint4*>(offsets);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.heaps + kThreads - 1) / kThreads;
  Allocate<<<static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks), kThreads, 0, stream>>>(
      args);
}

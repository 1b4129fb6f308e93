// Plain data, then one fence for the flags of all peers: the block's first thread fences once and
// stores all flags relaxed; on the other side threads spin relaxed and fence once at the end. Two
// sets of slots in turn, since there is one exchange of flags per call.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 16, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t pushed[kMaxBlocks][kMaxRanks];
};

__device__ uint2* Slots(const Args& args, int rank, std::uint32_t call) {
  return reinterpret_cast<uint2*>(args.scratch_peers[rank] + 4096) +
         call % 2 * args.world * (args.n / 2);
}

__global__ void __launch_bounds__(kThreads) AllGather(Args args) {
  const int block = blockIdx.x, world = args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  const std::int64_t pairs = args.n / 2, first = block * kThreads + threadIdx.x;
  const std::int64_t stride = gridDim.x * kThreads;
  for (std::int64_t i = first; i < pairs; i += stride) {
    const uint2 pair = reinterpret_cast<const uint2*>(args.in)[i];
    for (int step = 0; step < world; ++step) {
      Slots(args, (args.rank + step) % world, call)[args.rank * pairs + i] = pair;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    FenceAcqRelSys();
    for (int r = 0; r < world; ++r) {
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[r]);
      StoreRelaxedSys(&peer->pushed[block][args.rank], call);
    }
    for (int r = 0; r < world; ++r) WaitRelaxedSys(&mine->pushed[block][r], call);
    FenceAcqRelSys();
  }
  __syncthreads();
  for (int r = 0; r < world; ++r) {
    for (std::int64_t i = first; i < pairs; i += stride) {
      reinterpret_cast<uint2*>(args.out)[r * pairs + i] =
          Slots(args, args.rank, call)[r * pairs + i];
    }
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n / 2 + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllGather<<<blocks, kThreads, 0, stream>>>(args);
}

// Without shared memory: lanes load words from the peer's pool themselves, four on their way at a
// time, and store them to the row.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kWarps = 4, kAhead = 4;

struct Control {
  std::uint32_t calls[kMaxBlocks], entered[kMaxBlocks][kMaxRanks], done[kMaxBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(32 * kWarps) Gather(Args args) {
  const int block = blockIdx.x, thread = threadIdx.x, lane = thread % 32;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[thread % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (thread < args.world) {
    StoreReleaseSys(&peer->entered[block][args.rank], call);
    WaitAcquireSys(&mine->entered[block][thread], call);
  }
  __syncthreads();
  for (int s = block * kWarps + thread / 32; s < args.m; s += gridDim.x * kWarps) {
    const int length = args.length[s];
    const std::uint32_t* from = args.pool_peers[args.source[s]] + args.start[s];
    std::uint32_t* out = args.out + std::int64_t{s} * args.width;
    for (int first = lane; first < length; first += 32 * kAhead) {
      std::uint32_t x[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (first + 32 * k < length) x[k] = from[first + 32 * k];
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (first + 32 * k < length) out[first + 32 * k] = x[k];
      }
    }
  }
  __syncthreads();
  if (thread < args.world) {
    StoreReleaseSys(&peer->done[block][args.rank], call);  //@tell
    WaitAcquireSys(&mine->done[block][thread], call);      //@wait
  }
  if (thread == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.m + kWarps - 1) / kWarps);
  Gather<<<needed < kMaxBlocks ? needed : kMaxBlocks, 32 * kWarps, 0, stream>>>(args);
}

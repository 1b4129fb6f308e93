#include <allranks/flags.h>

// A warp per slot, a word of the target per lane, which reads the one or two aligned words of the
// source that it is made of.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 512, kWarps = kThreads / 32;

struct Control {
  std::uint32_t calls[kMaxBlocks], open[kMaxBlocks], done[kMaxBlocks];
};

__global__ void __launch_bounds__(kThreads) Copy(Args args) {
  const int next = (args.rank + 1) % args.world, before = (args.rank + args.world - 1) % args.world;
  const int block = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&reinterpret_cast<Control*>(args.scratch_peers[before])->open[block], call);
    WaitAcquireSys(&mine->open[block], call);
  }
  __syncthreads();

  const std::uint32_t* in = reinterpret_cast<const std::uint32_t*>(args.in_peers[next]);
  for (int i = block * kWarps + warp; i < args.n; i += gridDim.x * kWarps) {
    const int from = args.from[i], to = args.to[i], begin = 4 * lane, end = to + args.length[i];
    if (begin + 4 <= to || begin >= end) continue;
    const int source = begin + from - to;  // of this word's first byte, perhaps before the slot
    const int low = source < 0 ? 0 : source / 4,
              high = (source + 3) / 4 < 31 ? (source + 3) / 4 : 31;
    const std::uint32_t first = in[32 * i + low], second = in[32 * i + high];
    for (int b = begin; b < begin + 4; ++b) {
      const int at = b + from - to;
      if (b < to || b >= end) continue;
      args.out[128 * i + b] = (at / 4 == low ? first : second) >> 8 * (at % 4);
    }
  }

  __syncthreads();
  if (threadIdx.x == 0) {
    StoreReleaseSys(&reinterpret_cast<Control*>(args.scratch_peers[next])->done[block], call);
    WaitAcquireSys(&mine->done[block], call);
    mine->calls[block] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = (args.n + kWarps - 1) / kWarps;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Copy<<<blocks, kThreads, 0, stream>>>(args);
}

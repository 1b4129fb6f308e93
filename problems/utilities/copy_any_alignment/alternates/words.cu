#include <allranks/flags.h>

// A warp per slot, a word of 32 bits per lane: one request over the link. The words go through
// shared memory, where bytes can be read at any offset.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 512, kWarps = kThreads / 32;

struct Control {
  std::uint32_t calls[kMaxBlocks], open[kMaxBlocks], done[kMaxBlocks];
};

__global__ void __launch_bounds__(kThreads) Copy(Args args) {
  __shared__ std::uint32_t slots[kWarps][32];
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
    const int from = args.from[i], to = args.to[i], length = args.length[i];
    const bool touched = 4 * lane + 4 > from && 4 * lane < from + length;
    slots[warp][lane] = touched ? in[32 * i + lane] : 0;
    __syncwarp();
    const std::uint8_t* bytes = reinterpret_cast<const std::uint8_t*>(slots[warp]);
    std::uint8_t* out = args.out + 128 * i;
    for (int b = 4 * lane; b < 4 * lane + 4; ++b) {
      if (b >= to && b < to + length) out[b] = bytes[b - to + from];
    }
    __syncwarp();
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

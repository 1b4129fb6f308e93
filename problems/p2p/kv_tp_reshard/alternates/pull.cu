// By pulling: a prefill rank reports to all decode ranks that it has entered the call; these read
// `cache` across the link, and report when they have done so.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 32, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t reached[kMaxBlocks][kMaxRanks];  // the last call that a peer has entered or read
};

__global__ void __launch_bounds__(kThreads) Reshard(Args args) {
  const int from = static_cast<int>(args.from), to = static_cast<int>(args.to), block = blockIdx.x;
  const int decode = args.rank - from, peer = decode < 0 ? from + threadIdx.x : threadIdx.x;
  if (decode >= to) return;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[block] + 1;
  const bool talks = threadIdx.x < (decode < 0 ? to : from);
  const auto tell = [&] {
    if (!talks) return;
    Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
    StoreReleaseSys(&theirs->reached[block][args.rank], call);
  };
  if (decode < 0) tell();
  if (talks) WaitAcquireSys(&mine->reached[block][peer], call);
  __syncthreads();
  if (decode >= 0) {
    const std::int64_t quads = args.quads, tokens = args.tokens, held = args.held;
    uint4* out = reinterpret_cast<uint4*>(args.out);
    for (std::int64_t i = block * kThreads + threadIdx.x; i < args.kept * tokens * quads;
         i += gridDim.x * kThreads) {
      const std::int64_t row = i / quads, slot = decode * args.kept + row / tokens;
      const std::int64_t head = slot * from * held / (to * args.kept);
      const uint4* cache = reinterpret_cast<const uint4*>(args.cache_peers[head / held]);
      out[i] = cache[(row % tokens * held + head % held) * quads + i % quads];
    }
    __syncthreads();
    tell();
  }
  if (threadIdx.x == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t vectors = args.tokens * args.kept * args.quads;
  const std::int64_t needed = (vectors + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Reshard<<<blocks, kThreads, 0, stream>>>(args);
}

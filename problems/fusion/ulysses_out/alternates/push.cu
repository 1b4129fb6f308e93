#include <allranks/flags.h>

// Strided stores into the peers' `out`, one block per peer and part of its tokens. A block enters
// when the peer has, and ends when the peer's block for this rank has stored. Blocks for the own
// rank copy and write the padding.

constexpr unsigned kParts = 8, kThreads = 256;

struct Control {
  std::uint32_t calls[kMaxRanks][kParts];
  std::uint32_t entered[kMaxRanks][kParts], stored[kMaxRanks][kParts];  // by peer
};

__global__ void __launch_bounds__(kThreads) GatherHeads(Args args) {
  const unsigned peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer][part] + 1;
  if (threadIdx.x == 0) {
    allranks::StoreReleaseSys(&theirs->entered[rank][part], call);
    allranks::WaitAcquireSys(&mine->entered[peer][part], call);
  }
  __syncthreads();

  const unsigned width = args.heads * args.dim / 8, row = args.world * width;
  const unsigned each = (args.tokens + args.world - 1) / args.world;
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  uint4* out = reinterpret_cast<uint4*>(args.out_peers[peer]);
  for (unsigned i = part * kThreads + threadIdx.x; i < each * width; i += kParts * kThreads) {
    const unsigned token = peer * each + i / width;
    const uint4 v = token < args.tokens ? in[token * width + i % width] : uint4{0, 0, 0, 0};
    out[i / width * row + rank * width + i % width] = v;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    allranks::StoreReleaseSys(&theirs->stored[rank][part], call);
    allranks::WaitAcquireSys(&mine->stored[peer][part], call);
    mine->calls[peer][part] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  GatherHeads<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

#include <allranks/flags.h>

// Every rank pushes the tokens of a peer into slots at that peer, and says so by a flag. The peer
// need not have entered the call: it copies from its slots to `out` when it has. A block belongs to
// one peer and one part of the vectors, in both directions, so each has one flag to set and one to
// wait for. Flags are set even where there is no token: they also show that slots are free again.
//
// Slots exist twice, for odd and even calls. A block that writes in call k + 2 has seen the peer's
// flag of call k + 1. The peer had ended call k then, and had read what call k left there.

using namespace allranks;

constexpr unsigned kParts = 8, kThreads = 512;

// The beginning of every rank's scratch; slots follow.
struct Control {
  std::uint32_t calls[kMaxRanks][kParts];  // that the block has completed
  std::uint32_t sent[kMaxRanks][kParts];   // by peer: the last call whose part is here
};

__global__ void __launch_bounds__(kThreads) GatherHeads(Args args) {
  const unsigned peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer][part] + 1;
  const unsigned world = args.world, width = args.heads * args.dim / 8;  // vectors of 16 bytes
  const unsigned all = args.tokens * width;                              // in the whole sequence
  const unsigned most = (args.tokens + world - 1) / world * width;       // for one rank
  const unsigned set = call % 2 * world * most;
  const unsigned first = part * kThreads + threadIdx.x, stride = kParts * kThreads;
  const uint4* in = reinterpret_cast<const uint4*>(args.in);
  uint4* out = reinterpret_cast<uint4*>(args.out) + peer * width;

  const uint4* from = in + rank * most;
  if (peer != rank) {
    uint4* to = reinterpret_cast<uint4*>(theirs + 1) + set + rank * most;
    for (unsigned i = first; i < most && peer * most + i < all; i += stride) {
      to[i] = in[peer * most + i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->sent[rank][part], call);
      WaitAcquireSys(&mine->sent[peer][part], call);
    }
    __syncthreads();
    from = reinterpret_cast<const uint4*>(mine + 1) + set + peer * most;
  }
  for (unsigned i = first; i < most; i += stride) {
    const bool padding = rank * most + i >= all;
    out[i / width * world * width + i % width] = padding ? uint4{0, 0, 0, 0} : from[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[peer][part] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  GatherHeads<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

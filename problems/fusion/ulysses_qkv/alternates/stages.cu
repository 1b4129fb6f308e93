#include <allranks/flags.h>

// Every rank lays what a peer needs into a stage in its own memory, and says so by a flag; the peer
// loads it from there into its outputs. The flag waits for local stores only, and loads travel in
// larger packets than stores. A block belongs to one peer and one part of the vectors, in both
// directions, so each has one flag to set and one to wait for.
//
// Stages exist twice, for odd and even calls. A block that writes in call k + 2 has seen the peer's
// flag of call k + 1. The peer had ended call k then, and had read what call k left there.

using namespace allranks;

constexpr unsigned kParts = 8, kThreads = 512;

// The beginning of every rank's scratch; stages follow.
struct Control {
  std::uint32_t calls[kMaxRanks][kParts];   // that the block has completed
  std::uint32_t staged[kMaxRanks][kParts];  // by peer: the last call whose part it has staged
};

// Vectors of 16 bytes that a token has for one rank: queries, then keys, then values.
struct Shape {
  unsigned q, kv, all, groups;
  __device__ explicit Shape(const Args& args)
      : q(args.q_heads * args.dim / 8),
        kv(args.kv_heads * args.dim / 8),
        all(q + 2 * kv),
        groups((args.world + args.share - 1) / args.share) {}
};

// Vector i of what this rank has for rank `to`.
__device__ uint4 Input(const Args& args, const Shape& shape, unsigned to, unsigned i) {
  const unsigned token = i / shape.all, at = i % shape.all, heads = args.world * shape.q;
  const uint4* row =
      reinterpret_cast<const uint4*>(args.qkv) + token * (heads + 2 * shape.groups * shape.kv);
  if (at < shape.q) return row[to * shape.q + at];
  const unsigned value = at >= shape.q + shape.kv;  // 0: a key
  const unsigned group = value * shape.groups + to / static_cast<unsigned>(args.share);
  return row[heads + group * shape.kv + at - shape.q - value * shape.kv];
}

// Where vector i of what rank `from` has for this rank belongs.
__device__ uint4* Output(const Args& args, const Shape& shape, unsigned from, unsigned i) {
  const unsigned token = from * args.tokens + i / shape.all, at = i % shape.all;
  if (at < shape.q) return reinterpret_cast<uint4*>(args.q) + token * shape.q + at;
  const unsigned value = at >= shape.q + shape.kv;
  return reinterpret_cast<uint4*>(value ? args.v : args.k) + token * shape.kv + at - shape.q -
         value * shape.kv;
}

__global__ void __launch_bounds__(kThreads) ShareHeads(Args args) {
  const unsigned peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer][part] + 1;
  const Shape shape(args);
  const unsigned vectors = args.tokens * shape.all, set = call % 2 * args.world * vectors;
  const unsigned first = part * kThreads + threadIdx.x, stride = kParts * kThreads;

  if (peer == rank) {
    for (unsigned i = first; i < vectors; i += stride) {
      *Output(args, shape, rank, i) = Input(args, shape, rank, i);
    }
  } else {
    uint4* stage = reinterpret_cast<uint4*>(mine + 1) + set + peer * vectors;
    for (unsigned i = first; i < vectors; i += stride) stage[i] = Input(args, shape, peer, i);
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->staged[rank][part], call);
      WaitAcquireSys(&mine->staged[peer][part], call);
    }
    __syncthreads();
    const uint4* from = reinterpret_cast<const uint4*>(theirs + 1) + set + rank * vectors;
    for (unsigned i = first; i < vectors; i += stride) {
      *Output(args, shape, peer, i) = from[i];
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[peer][part] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  ShareHeads<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

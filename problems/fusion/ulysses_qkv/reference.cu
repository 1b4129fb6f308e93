#include <allranks/flags.h>

// Every rank pushes what a peer needs into slots at that peer, and says so by a flag. The peer need
// not have entered the call: it copies from its slots to its outputs when it has. A block belongs
// to one peer and one part of the vectors, in both directions, so each has one flag to set and one
// to wait for.
//
// Many vectors go straight to the peer's outputs: the copy from the slots would then take longer
// than to hear that the peer has entered. A peer leaves when the flag behind all vectors is there.
//
// Slots exist twice, for odd and even calls. A block that writes in call k + 2 has seen the peer's
// flag of call k + 1. The peer had ended call k then, and had read what call k left there.

using namespace allranks;

constexpr unsigned kParts = 8, kThreads = 512;
constexpr unsigned kStaged = kParts * kThreads;  // vectors for a peer that are not many

// The beginning of every rank's scratch; slots follow.
struct Control {
  std::uint32_t calls[kMaxRanks][kParts];    // that the block has completed
  std::uint32_t sent[kMaxRanks][kParts];     // by peer: the last call whose part is here
  std::uint32_t entered[kMaxRanks][kParts];  // by peer: the last call that it is in
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

// Where vector i of what rank `from` has for rank `to` belongs there.
__device__ uint4* Output(const Args& args, const Shape& shape, unsigned to, unsigned from,
                         unsigned i) {
  const unsigned token = from * args.tokens + i / shape.all, at = i % shape.all;
  if (at < shape.q) return reinterpret_cast<uint4*>(args.q_peers[to]) + token * shape.q + at;
  const unsigned value = at >= shape.q + shape.kv;
  void* out = value ? args.v_peers[to] : args.k_peers[to];
  return reinterpret_cast<uint4*>(out) + token * shape.kv + at - shape.q - value * shape.kv;
}

__global__ void __launch_bounds__(kThreads) ShareHeads(Args args) {
  const unsigned peer = blockIdx.x / kParts, part = blockIdx.x % kParts, rank = args.rank;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer][part] + 1;  //@epoch
  const Shape shape(args);
  const unsigned vectors = args.tokens * shape.all, set = call % 2 * args.world * vectors;
  const unsigned first = part * kThreads + threadIdx.x, stride = kParts * kThreads;

  if (peer == rank) {
    for (unsigned i = first; i < vectors; i += stride) {  //@own
      *Output(args, shape, rank, rank, i) = Input(args, shape, rank, i);
    }
  } else if (vectors > kStaged) {
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->entered[rank][part], call);  //@enter
      WaitAcquireSys(&mine->entered[peer][part], call);     //@entered
    }
    __syncthreads();  //@open
#pragma unroll 4
    for (unsigned i = first; i < vectors; i += stride) {
      *Output(args, shape, peer, rank, i) = Input(args, shape, peer, i);
    }
    __syncthreads();  //@stored
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->sent[rank][part], call);  //@publish
      WaitAcquireSys(&mine->sent[peer][part], call);     //@stay
    }
  } else {
    uint4* to = reinterpret_cast<uint4*>(theirs + 1) + set + rank * vectors;
    for (unsigned i = first; i < vectors; i += stride) to[i] = Input(args, shape, peer, i);
    __syncthreads();  //@pushed
    if (threadIdx.x == 0) {
      StoreReleaseSys(&theirs->sent[rank][part], call);  //@tell
      WaitAcquireSys(&mine->sent[peer][part], call);     //@wait
    }
    __syncthreads();  //@arrived
    const uint4* from = reinterpret_cast<const uint4*>(mine + 1) + set + peer * vectors;
    for (unsigned i = first; i < vectors; i += stride) {
      *Output(args, shape, rank, peer, i) = from[i];
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[peer][part] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  ShareHeads<<<args.world * kParts, kThreads, 0, stream>>>(args);
}

#include <allranks/flags.h>

// Every rank copies its shard to a stage in its own symmetric memory and says so by flags; then it
// loads the rows of its queries from the stages of their owners. A stage, unlike the shard itself,
// may still be read when its owner is in the next call, so that no rank waits for its readers.
//
// A block stages a part of the shard, but may need any row: it waits for all blocks of all ranks.
// Stages exist twice, for odd and even calls. A block that writes in call k + 2 has seen the flags
// of all blocks of all peers for call k + 1. They had ended call k then, and had read their rows.

using namespace allranks;

constexpr int kThreads = 1024, kMaxBlocks = 8;
constexpr int kBatch = 2;  // vectors that a thread has under way at a time

// The beginning of every rank's scratch; stages follow.
struct Control {
  std::uint32_t calls[kMaxBlocks];              // that the block has completed
  std::uint32_t staged[kMaxRanks][kMaxBlocks];  // by peer: the last call that the block has staged
};

// The ids of the vectors at, at + stride, ...
__device__ void LoadIds(const Args& args, unsigned at, unsigned stride, unsigned (&id)[kBatch]) {
#pragma unroll
  for (int j = 0; j < kBatch; ++j) {
    const unsigned query = (at + j * stride) / static_cast<unsigned>(args.quads);
    id[j] = query < args.queries ? args.ids[query] : args.vocab;
  }
}

__global__ void __launch_bounds__(kThreads) LookUp(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const unsigned world = args.world, quads = args.quads, vocab = args.vocab;
  const unsigned per = (vocab + world - 1) / world, vectors = args.queries * quads;
  const unsigned first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const std::int64_t set = call % 2 * per * quads;

  unsigned id[kBatch];
  LoadIds(args, first, stride, id);  // on their way while we stage and wait
  uint4* stage = reinterpret_cast<uint4*>(mine + 1) + set;
  for (unsigned i = first; i < per * quads; i += stride) {
    stage[i] = reinterpret_cast<const uint4*>(args.shard)[i];
  }
  __syncthreads();  //@staged
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->staged[args.rank][blockIdx.x], call);  //@tell
  }
  for (unsigned i = threadIdx.x; i < world * gridDim.x; i += kThreads) {
    WaitAcquireSys(&mine->staged[i % world][i / world], call);  //@wait
  }
  __syncthreads();  //@arrived

  uint4* out = reinterpret_cast<uint4*>(args.out);
  for (unsigned at = first; at < vectors; at += kBatch * stride) {
    uint4 v[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      v[j] = make_uint4(0, 0, 0, 0);
      if (id[j] >= vocab) continue;
      const unsigned owner = id[j] / per, row = id[j] % per;
      const Control* theirs = reinterpret_cast<const Control*>(args.scratch_peers[owner]);
      v[j] = (reinterpret_cast<const uint4*>(theirs + 1) +
              set)[row * quads + (at + j * stride) % quads];
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const unsigned i = at + j * stride;
      if (i < vectors) out[i] = v[j];
    }
    LoadIds(args, at + kBatch * stride, stride, id);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t vectors = args.queries * args.quads;
  const std::int64_t needed = (vectors + 2 * kThreads - 1) / (2 * kThreads);
  const int blocks = static_cast<int>(needed < kMaxBlocks ? needed : kMaxBlocks);
  LookUp<<<blocks, kThreads, 0, stream>>>(args);
}

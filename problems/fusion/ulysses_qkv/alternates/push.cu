#include <allranks/flags.h>

// Strided stores into the peers' outputs. Block b of every rank has the same vectors of each
// message. It meets its peers' blocks b twice: when all have entered the call, so that outputs may
// be written, and when all have stored.

constexpr unsigned kMaxBlocks = 64, kThreads = 256;

struct Control {
  std::uint32_t meetings[kMaxBlocks];
  std::uint32_t reached[kMaxBlocks][kMaxRanks];  // by peer: the last meeting that it has come to
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[blockIdx.x][args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[blockIdx.x][threadIdx.x], meeting);
  }
  __syncthreads();
}

// Copies `width` vectors of each token, which begin at `first` in rows of `all`, to a peer's
// tensor.
__device__ void Push(const Args& args, __nv_bfloat16* to, unsigned width, unsigned first,
                     unsigned all) {
  uint4* rows = reinterpret_cast<uint4*>(to) + args.rank * args.tokens * width;
  const uint4* from = reinterpret_cast<const uint4*>(args.qkv) + first;
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < args.tokens * width;
       i += gridDim.x * kThreads) {
    rows[i] = from[i / width * all + i % width];
  }
}

__global__ void __launch_bounds__(kThreads) ShareHeads(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t before = mine->meetings[blockIdx.x];
  const unsigned q = args.q_heads * args.dim / 8, kv = args.kv_heads * args.dim / 8;
  const unsigned groups = (args.world + args.share - 1) / args.share, keys = args.world * q;
  const unsigned all = keys + 2 * groups * kv;
  Meet(args, before + 1);
  for (int step = 0; step < args.world; ++step) {
    const unsigned to = (args.rank + step) % args.world, group = to / args.share;
    Push(args, args.q_peers[to], q, to * q, all);
    Push(args, args.k_peers[to], kv, keys + group * kv, all);
    Push(args, args.v_peers[to], kv, keys + (groups + group) * kv, all);
  }
  Meet(args, before + 2);
  if (threadIdx.x == 0) mine->meetings[blockIdx.x] = before + 2;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const unsigned vectors = args.tokens * args.q_heads * args.dim / 8;
  const unsigned blocks = (vectors + kThreads - 1) / kThreads;
  const unsigned granted = blocks < kMaxBlocks ? blocks : kMaxBlocks;
  ShareHeads<<<granted, kThreads, 0, stream>>>(args);
}

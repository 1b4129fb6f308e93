#include <allranks/flags.h>

// A kernel in which all ranks meet, kernels that pull element by element from all peers' qkv, and a
// second meeting, so that no rank leaves while its qkv is read.

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

// `heads` heads of every peer's tokens, from its head `first` on.
__global__ void Pull(Args args, __nv_bfloat16* to, unsigned heads, unsigned first) {
  const unsigned groups = (args.world + args.share - 1) / args.share, dim = args.dim;
  const unsigned all = args.world * args.q_heads + 2 * groups * args.kv_heads;
  const unsigned each = args.tokens * heads * dim, stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < args.world * each; i += stride) {
    const unsigned from = i / each, token = i % each / (heads * dim), at = i % (heads * dim);
    reinterpret_cast<std::uint16_t*>(to)[i] = reinterpret_cast<const std::uint16_t*>(
        args.qkv_peers[from])[(token * all + first) * dim + at];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const unsigned groups = (args.world + args.share - 1) / args.share;
  const unsigned keys = args.world * args.q_heads, group = args.rank / args.share;
  Meet<<<1, 32, 0, stream>>>(args);
  Pull<<<32, 256, 0, stream>>>(args, args.q, args.q_heads, args.rank * args.q_heads);
  Pull<<<32, 256, 0, stream>>>(args, args.k, args.kv_heads, keys + group * args.kv_heads);
  Pull<<<32, 256, 0, stream>>>(args, args.v, args.kv_heads,
                               keys + (groups + group) * args.kv_heads);
  Meet<<<1, 32, 0, stream>>>(args);
}

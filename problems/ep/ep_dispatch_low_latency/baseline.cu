// Kernel by kernel: all ranks meet, then a block per expert and source reads that source's choices
// token by token and fetches the rows element by element. A second meeting keeps inputs alive.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kBlocks = 64;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Fetch(Args args) {
  for (int pair = blockIdx.x; pair < args.per * args.world; pair += kBlocks) {
    const int e = pair / args.world, source = pair % args.world;
    const auto* x = reinterpret_cast<const std::uint16_t*>(args.x_peers[source]);
    auto* to = reinterpret_cast<std::uint16_t*>(args.recv_x) + pair * args.tokens * args.hidden;
    int count = 0;
    for (int token = 0; token < args.tokens; ++token) {
      bool chosen = false;
      for (int k = 0; k < args.topk; ++k) {
        chosen |= args.ids_peers[source][token * args.topk + k] == args.rank * args.per + e;
      }
      if (!chosen) continue;
      for (int j = threadIdx.x; j < args.hidden; j += kThreads) {
        to[count * args.hidden + j] = x[token * args.hidden + j];
      }
      if (threadIdx.x == 0) args.recv_token[pair * args.tokens + count] = token;
      ++count;
    }
    if (threadIdx.x == 0) args.recv_count[pair] = count;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Fetch<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

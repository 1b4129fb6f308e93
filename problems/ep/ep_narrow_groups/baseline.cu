// All ranks meet; a block per expert walks through the choices of its group and fetches rows, number
// by number; one thread per expert counts the choices of all ranks; all ranks meet again.
#include <allranks/flags.h>

using namespace allranks;

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
  const std::int64_t group = args.group, hidden = args.hidden, tokens = args.tokens;
  const std::int64_t first = args.rank / group * group, e = blockIdx.x;
  std::int64_t row = e * group * tokens;
  for (std::int64_t s = 0; s < group; ++s) {
    const std::int64_t begin = row;
    for (std::int64_t i = 0; i < tokens * args.topk; ++i) {
      if (args.ids_peers[first + s][i] != args.rank % group * args.per + e) continue;
      const std::int64_t token = i / args.topk;
      const auto* from = reinterpret_cast<const std::uint16_t*>(args.x_peers[first + s]);
      auto* to = reinterpret_cast<std::uint16_t*>(args.recv_x);
      for (std::int64_t j = threadIdx.x; j < hidden; j += 64) {
        to[row * hidden + j] = from[token * hidden + j];
      }
      if (threadIdx.x == 0) args.recv_from[row] = static_cast<int>((first + s) * tokens + token);
      ++row;
    }
    if (threadIdx.x == 0) args.count[e * group + s] = static_cast<int>(row - begin);
  }
}

__global__ void CountAll(Args args) {
  int load = 0;
  for (int r = 0; r < args.world; ++r) {
    for (int i = 0; i < args.tokens * args.topk; ++i) load += args.ids_peers[r][i] == threadIdx.x;
  }
  args.load[threadIdx.x] = load;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Fetch<<<static_cast<int>(args.per), 64, 0, stream>>>(args);
  CountAll<<<1, static_cast<int>(args.group * args.per), 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

// One after the other, each with all blocks: the given kernel, then a meeting of all ranks, a copy
// of the shard to everybody, and another meeting.
#include <allranks/flags.h>
using namespace allranks;

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->arrived[args.rank], meeting);
    WaitAcquireSys(&mine->arrived[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Copy(Args args) {
  for (std::int64_t i = blockIdx.x * 512 + threadIdx.x; i < args.n; i += gridDim.x * 512) {
    for (int r = 0; r < args.world; ++r) {
      args.next_peers[r][args.rank * args.n + i] = args.shard[i];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Multiply<<<4, kTileThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Copy<<<4, 512, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

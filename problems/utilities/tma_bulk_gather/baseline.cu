// Step by step: all meet, so that every pool is open; a block copies a segment word by word; all
// meet again, so that nobody leaves while its pool is read.
#include <allranks/flags.h>
using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kThreads = 128;

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Copy(Args args) {
  for (std::int64_t s = blockIdx.x; s < args.m; s += kBlocks) {
    const std::uint32_t* from = args.pool_peers[args.source[s]] + args.start[s];
    for (int k = threadIdx.x; k < args.length[s]; k += kThreads) {
      args.out[s * args.width + k] = from[k];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Copy<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

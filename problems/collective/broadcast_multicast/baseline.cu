// Step by step: all tell their votes and meet; the root stores its words to every rank; all meet
// again, so that nobody leaves before its data have come.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t votes[kMaxRanks];     // by peer, of this call
};
constexpr int kBlocks = 32, kThreads = 256;

// Votes are told at the first meeting only: at the second a slower peer may still read them.
__global__ void Meet(Args args, bool tells) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    if (tells) peer->votes[args.rank] = *args.vote;
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Push(Args args) {
  const Control* mine = reinterpret_cast<const Control*>(args.scratch);
  int votes = 0;
  for (int r = 0; r < args.world; ++r) votes += mine->votes[r];
  if (args.rank != votes % args.world) return;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += kBlocks * kThreads) {
    for (int r = 0; r < args.world; ++r) args.out_peers[r][i] = args.in[i];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args, true);
  Push<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args, false);
}

// Step by step: all tell their lengths and meet; a kernel stores the rows to the root; all meet
// again, so that nobody leaves before its data have come.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t lengths[kMaxRanks];   // by peer, of this call
};
constexpr int kBlocks = 32, kThreads = 256;

// Lengths are told at the first meeting only: at the second a slower peer may still read them.
__global__ void Meet(Args args, bool tells) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    if (tells) peer->lengths[args.rank] = *args.length;
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Push(Args args) {
  const Control* mine = reinterpret_cast<const Control*>(args.scratch);
  std::int64_t sums[kMaxRanks + 1] = {0};
  for (int r = 0; r < args.world; ++r) sums[r + 1] = sums[r] + mine->lengths[r];
  const std::int64_t words = *args.length * args.width, to = sums[args.rank] * args.width;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < words; i += kBlocks * kThreads) {
    args.out_peers[args.root][to + i] = args.in[i];
  }
  if (first == 0 && args.rank == args.root) {
    for (int r = 0; r <= args.world; ++r) args.starts[r] = sums[r];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args, true);
  Push<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args, false);
}

// In kernels of their own, with meetings of one warp before and after: the end of a kernel takes
// the place of flags per block, so the grid may have any shape. Copies are vectors of 16 bytes.
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
  const std::int64_t quads = args.width / 4, vectors = *args.length * quads;
  uint4* out = reinterpret_cast<uint4*>(args.out_peers[args.root]) + sums[args.rank] * quads;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < vectors; i += kBlocks * kThreads) {
    out[i] = reinterpret_cast<const uint4*>(args.in)[i];
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

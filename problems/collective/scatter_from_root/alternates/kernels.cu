// In kernels of their own, with meetings of one warp before and after: the end of a kernel takes
// the place of flags per block, so the grid may have any shape. Copies are vectors of 16 bytes.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t length;               // written by the root
};
constexpr int kBlocks = 32, kThreads = 256;

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

__global__ void Push(Args args) {
  if (args.rank != args.root) return;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  const uint4* from = reinterpret_cast<const uint4*>(args.in);
  for (int r = 0; r < args.world; ++r) {
    const std::int64_t vectors = args.counts[r] * (args.width / 4);
    for (std::int64_t i = first; i < vectors; i += kBlocks * kThreads) {
      reinterpret_cast<uint4*>(args.out_peers[r])[i] = from[i];
    }
    from += vectors;
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[r]);
    if (first == 0) peer->length = args.counts[r];
  }
}

__global__ void Tell(Args args) { *args.length = reinterpret_cast<Control*>(args.scratch)->length; }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Push<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Tell<<<1, 1, 0, stream>>>(args);
}

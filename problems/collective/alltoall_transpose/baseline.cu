// All ranks meet, every rank writes its columns to the peers in pairs of numbers, and all meet
// again.
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
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Scatter(Args args) {
  const std::uint32_t* in = reinterpret_cast<const std::uint32_t*>(args.in);
  const std::int64_t width = args.cols / 2, part = args.tokens * width;
  for (int peer = 0; peer < args.world; ++peer) {
    std::uint32_t* to = reinterpret_cast<std::uint32_t*>(args.out_peers[peer]) + args.rank * part;
    for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < part;
         i += gridDim.x * blockDim.x) {
      to[i] = in[(i / width * args.world + peer) * width + i % width];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Scatter<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

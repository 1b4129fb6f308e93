#include <allranks/flags.h>

// All ranks meet, a kernel loads word by word from the owners' features, and all meet again, so
// that no rank leaves while its features are read.

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

__global__ void Load(Args args) {
  const int width = 4 * args.quads, stride = gridDim.x * blockDim.x;
  int begin = 0;
  for (int owner = 0; owner < args.world; ++owner) {
    const int words = args.counts[owner] * width;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride) {
      const int at = begin + i / width;
      args.out[at * width + i % width] =
          args.features_peers[owner][args.ids[at] * width + i % width];
    }
    begin += args.counts[owner];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Load<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

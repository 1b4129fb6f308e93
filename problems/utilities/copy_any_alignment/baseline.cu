#include <allranks/flags.h>

// All ranks meet, a thread per slot copies byte by byte, all meet again.
using namespace allranks;

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kThreads = 64;

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

__global__ void Copy(Args args) {
  const std::uint8_t* in = args.in_peers[(args.rank + 1) % args.world];
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += gridDim.x * kThreads) {
    for (int j = 0; j < args.length[i]; ++j) {
      args.out[128 * i + args.to[i] + j] = in[128 * i + args.from[i] + j];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Copy<<<32, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

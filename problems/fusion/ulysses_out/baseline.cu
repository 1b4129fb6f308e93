#include <allranks/flags.h>

// A kernel in which all ranks meet, one that pulls element by element from all peers' `in`, and a
// second meeting, so that no rank leaves while its `in` is read.

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

__global__ void Pull(Args args) {
  const unsigned part = (args.tokens + args.world - 1) / args.world, width = args.heads * args.dim;
  const unsigned row = args.world * width, stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < part * row; i += stride) {
    const unsigned token = args.rank * part + i / row, from = i % row / width;
    const auto* in = reinterpret_cast<const std::uint16_t*>(args.in_peers[from]);
    reinterpret_cast<std::uint16_t*>(args.out)[i] =
        token < args.tokens ? in[token * width + i % width] : 0;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Pull<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

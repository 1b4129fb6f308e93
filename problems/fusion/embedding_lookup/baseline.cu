#include <allranks/flags.h>

// All ranks meet, a kernel loads word by word from the shards, and all meet again, so that no rank
// leaves while its shard is read.

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
  const int width = 4 * args.quads, per = (args.vocab + args.world - 1) / args.world;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < args.queries * width;
       i += gridDim.x * blockDim.x) {
    const int id = args.ids[i / width];
    args.out[i] = id < args.vocab ? args.shard_peers[id / per][id % per * width + i % width] : 0;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Load<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

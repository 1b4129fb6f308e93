#include <allranks/flags.h>

// One thread per owner walks through the list and notes the places of its pairs, all ranks meet and
// look at each other's numbers, a kernel stores word by word into the outputs of the owners, and
// all meet again.

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t pairs[kMaxRanks];     // of this rank, by owner
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}

__global__ void Place(Args args) {
  Control* mine = ControlOf(args, args.rank);
  std::int32_t* places = reinterpret_cast<std::int32_t*>(mine + 1);
  if (threadIdx.x >= args.world) return;
  int pairs = 0;
  for (int i = 0; i < args.count[0]; ++i) {
    if (args.ids[i] % args.world == threadIdx.x) places[i] = pairs++;
  }
  mine->pairs[threadIdx.x] = pairs;
}

__global__ void Meet(Args args) {
  Control* mine = ControlOf(args, args.rank);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    allranks::StoreReleaseSys(&ControlOf(args, threadIdx.x)->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Send(Args args) {
  const std::int32_t* places =
      reinterpret_cast<const std::int32_t*>(ControlOf(args, args.rank) + 1);
  const int width = 4 * args.quads, first = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ int starts[kMaxRanks];
  if (threadIdx.x < args.world) {
    int start = 0;
    for (int s = 0; s < args.rank; ++s) start += ControlOf(args, s)->pairs[threadIdx.x];
    starts[threadIdx.x] = start;
    if (blockIdx.x == 0) {
      args.received[threadIdx.x] = ControlOf(args, threadIdx.x)->pairs[args.rank];
    }
  }
  __syncthreads();
  for (int i = first; i < args.count[0] * width; i += gridDim.x * blockDim.x) {
    const int pair = i / width, owner = args.ids[pair] % args.world;
    const int to = starts[owner] + places[pair];
    args.out_values_peers[owner][to * width + i % width] = args.values[i];
    if (i % width == 0) args.out_ids_peers[owner][to] = args.ids[pair];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Place<<<1, 32, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Send<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

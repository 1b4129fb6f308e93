// Step by step, with three sets of bits in this rank's memory: clear them; meet; mark seeds
// and their samples; mark the samples of everything that the first hop has marked; meet; a single
// block writes the ids in order.
#include <allranks/flags.h>

using namespace allranks;

// The beginning of every rank's scratch; three sets of nodes follow: seeds, first and second hop.
struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

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

__device__ std::uint32_t* Word(const Args& args, int node, int hop) {
  const std::int64_t words = (args.world * args.nodes + 31) / 32;
  return reinterpret_cast<std::uint32_t*>(args.scratch + 256) + hop * words + node / 32;
}
__device__ void Mark(const Args& args, int node, int hop) {
  atomicOr(Word(args, node, hop), 1u << node % 32);
}
__device__ bool Marked(const Args& args, int node, int hop) {
  return (*Word(args, node, hop) >> node % 32 & 1) != 0;
}

__global__ void Clear(Args args) {
  const int all = args.world * args.nodes;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
    for (int hop = 0; hop < 3 && i % 32 == 0; ++hop) *Word(args, i, hop) = 0;
  }
}

__device__ int Neighbour(const Args& args, int node, int j) {
  const int owner = node / args.nodes, row = node % args.nodes;
  if (j >= args.width || j >= args.degree_peers[owner][row]) return -1;
  return args.neighbours_peers[owner][row * args.width + j];
}

__global__ void First(Args args) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= args.batch) return;
  Mark(args, args.seeds[i], 0);
  for (int j = 0; j < args.fanout; ++j) {
    const int node = Neighbour(args, args.seeds[i], j);
    args.picked[i * args.fanout + j] = node;
    if (node >= 0) Mark(args, node, 1);
  }
}

__global__ void Second(Args args) {
  const int all = args.world * args.nodes;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
    for (int j = 0; j < args.fanout && Marked(args, i, 1); ++j) {
      const int node = Neighbour(args, i, j);
      if (node >= 0) Mark(args, node, 2);
    }
  }
}

__global__ void Collect(Args args) {
  int count = 0;
  const int all = args.world * args.nodes, lane = threadIdx.x;
  for (int first = 0; first < all; first += 32) {
    const int node = first + lane;
    const bool reached =
        node < all && (Marked(args, node, 0) || Marked(args, node, 1) || Marked(args, node, 2));
    const std::uint32_t lanes = __ballot_sync(~0u, reached);
    if (reached) args.ids[count + __popc(lanes & ((1u << lane) - 1))] = node;
    count += __popc(lanes);
  }
  if (lane == 0) args.count[0] = count;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Clear<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  First<<<(args.batch + 31) / 32, 32, 0, stream>>>(args);
  Second<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Collect<<<1, 32, 0, stream>>>(args);
}

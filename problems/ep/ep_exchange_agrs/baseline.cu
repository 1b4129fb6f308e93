// All ranks meet, a kernel reads the members' tokens, another one their shares of answers, and all
// meet again.
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

__global__ void Gather(Args args) {
  const int first = args.rank / args.group * args.group;
  const std::int64_t width = 4 * args.quads;
  std::int64_t at = 0;
  for (int r = first; r < first + args.group && r < args.world; ++r) {
    const std::int64_t rows = args.rows_peers[r][0];
    for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * width;
         i += gridDim.x * blockDim.x) {
      args.gathered[at * width + i] = args.x_peers[r][i];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) args.counts[r - first] = static_cast<int>(rows);
    at += rows;
  }
}

__global__ void Reduce(Args args) {
  const int first = args.rank / args.group * args.group;
  const std::int64_t width = 4 * args.quads;
  std::int64_t at = 0;
  for (int r = first; r < args.rank; ++r) at += args.rows_peers[r][0];
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.rows[0] * width;
       i += gridDim.x * blockDim.x) {
    float sum = 0;
    for (int r = first; r < first + args.group && r < args.world; ++r) {
      sum += args.y_peers[r][at * width + i];
    }
    args.out[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<16, 256, 0, stream>>>(args);
  Reduce<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

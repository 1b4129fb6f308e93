// Kernel by kernel: sums of the own columns, a meeting, the sum over ranks, and a meeting before
// the next call overwrites what peers read.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 8, kThreads = 128, kSums = 256;

// A thread has a column. Sums of weights come first, then those of biases.
__global__ void Columns(Args args) {
  float* sums = reinterpret_cast<float*>(args.scratch + kSums);
  for (int j = blockIdx.x * kThreads + threadIdx.x; j < args.hidden; j += kBlocks * kThreads) {
    float weight = 0, bias = 0;
    for (std::int64_t row = 0; row < args.rows; ++row) {
      const float dy = args.dy[row * args.hidden + j];
      weight += dy * args.xhat[row * args.hidden + j];
      bias += dy;
    }
    sums[j] = weight;
    sums[args.hidden + j] = bias;
  }
}

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

__global__ void Ranks(Args args) {
  for (int j = blockIdx.x * kThreads + threadIdx.x; j < args.hidden; j += kBlocks * kThreads) {
    float weight = 0, bias = 0;
    for (int r = 0; r < args.world; ++r) {
      const float* sums = reinterpret_cast<const float*>(args.scratch_peers[r] + kSums);
      weight += sums[j];
      bias += sums[args.hidden + j];
    }
    args.dweight[j] = weight;
    args.dbias[j] = bias;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Columns<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Ranks<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

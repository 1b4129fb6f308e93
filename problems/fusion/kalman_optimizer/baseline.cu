// Kernel by kernel: gains, the rank's share of the scalar sent to all, a meeting, new covariances
// and new weights of the own blocks stored at all ranks, and a last meeting.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256, kWarps = kThreads / 32, kData = 4096;
constexpr double kForget = 63.0 / 64;

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];
  double of_ranks[kMaxRanks];
};

__global__ void Gain(Args args) {
  const int n = args.n, rows = args.blocks * n, lane = threadIdx.x % 32;
  double* gains = reinterpret_cast<double*>(args.scratch + kData);
  for (int row = blockIdx.x * kWarps + threadIdx.x / 32; row < rows; row += kBlocks * kWarps) {
    double gain = 0;
    for (int j = lane; j < n; j += 32) {
      const double noise = j == row % n ? 4.0 * n : 0;
      gain += (args.covariance[row * n + j] + noise) * args.gradient[row / n * n + j];
    }
    for (int step = 16; step > 0; step /= 2) gain += __shfl_xor_sync(~0u, gain, step);
    if (lane == 0) gains[row] = gain;
  }
}

__global__ void Share(Args args) {
  const double* gains = reinterpret_cast<const double*>(args.scratch + kData);
  double sum = 0;
  for (int row = threadIdx.x; row < args.blocks * args.n; row += 32) {
    sum += args.gradient[row] * gains[row];
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    peer->of_ranks[args.rank] = sum + kForget * args.blocks;
  }
}

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

__global__ void Update(Args args) {
  const Control* mine = reinterpret_cast<const Control*>(args.scratch);
  const double* gains = reinterpret_cast<const double*>(args.scratch + kData);
  double total = 0;
  for (int r = 0; r < args.world; ++r) total += mine->of_ranks[r];
  const int n = args.n, rows = args.blocks * n, first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < rows * n; i += kBlocks * kThreads) {
    const int row = i / n, col = row / n * n + i % n;
    const double old = args.covariance[i] + (row == col ? 4.0 * n : 0);
    args.new_covariance[i] = (old - gains[row] * gains[col] / total) / kForget;
  }
  for (int i = first; i < rows; i += kBlocks * kThreads) {
    const double next = args.weight[i] + gains[i] * args.error[0] / total;
    for (int r = 0; r < args.world; ++r) args.weights_peers[r][args.rank * rows + i] = next;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Gain<<<kBlocks, kThreads, 0, stream>>>(args);
  Share<<<1, 32, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Update<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

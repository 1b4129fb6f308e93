// Kernel by kernel: sums of squares of the own columns, a meeting, everybody's sums and the norm,
// and a meeting before sums are overwritten.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kThreads = 128, kBlocks = 64, kSums = 256;

__global__ void Squares(Args args) {
  __shared__ float of_thread[kThreads];
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    float sum = 0;
    for (std::int64_t j = threadIdx.x; j < args.hidden; j += kThreads) {
      const float x = args.x[row * args.hidden + j];
      sum += x * x;
    }
    of_thread[threadIdx.x] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) of_thread[threadIdx.x] += of_thread[threadIdx.x + half];
    }
    if (threadIdx.x == 0) reinterpret_cast<float*>(args.scratch + kSums)[row] = of_thread[0];
    __syncthreads();
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

__global__ void Scale(Args args) {
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    float total = 0;
    for (int r = 0; r < args.world; ++r) {
      total += reinterpret_cast<const float*>(args.scratch_peers[r] + kSums)[row];
    }
    const float root = sqrtf(total / (args.world * args.hidden) + 1e-5f);
    for (std::int64_t j = threadIdx.x; j < args.hidden; j += kThreads) {
      args.norm[row * args.hidden + j] = args.weight[j] * args.x[row * args.hidden + j] / root;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Squares<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Scale<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

// Kernel by kernel: stage the input, meet, add up what all ranks staged, meet, normalise.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kThreads = 256, kData = 256;

__global__ void Stage(Args args) {
  float* staged = reinterpret_cast<float*>(args.scratch + kData);
  const std::int64_t n = args.rows * args.hidden;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) {
    staged[i] = args.in[i];
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

__global__ void AddUp(Args args) {
  const std::int64_t n = args.rows * args.hidden;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) {
    float sum = args.residual[i];
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const float*>(args.scratch_peers[r] + kData)[i];
    }
    args.stream[i] = sum;
  }
}

// A warp has a row.
__global__ void Normalise(Args args) {
  const int warp = (blockIdx.x * kThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  for (std::int64_t row = warp; row < args.rows; row += kBlocks * kThreads / 32) {
    const float* h = args.stream + row * args.hidden;
    float squares = 0;
    for (int j = lane; j < args.hidden; j += 32) squares += h[j] * h[j];
    for (int d = 16; d > 0; d /= 2) squares += __shfl_xor_sync(~0u, squares, d);
    const float factor = rsqrtf(squares / args.hidden + 1e-5f);
    for (int j = lane; j < args.hidden; j += 32) {
      args.norm[row * args.hidden + j] = args.weight[j] * h[j] * factor;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  AddUp<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Normalise<<<kBlocks, kThreads, 0, stream>>>(args);
}

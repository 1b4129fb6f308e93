// Kernel by kernel: meet, add up the parts of all ranks, normalise, meet, copy the rows of all
// ranks, meet.
#include <allranks/flags.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kThreads = 256;

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
    for (int r = 0; r < args.world; ++r) sum += args.in_peers[r][args.rank * n + i];
    args.stream[i] = sum;
  }
}

// A warp has a row.
__global__ void Normalise(Args args) {
  const int warp = (blockIdx.x * kThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  for (std::int64_t row = warp; row < args.rows; row += kBlocks * kThreads / 32) {
    const float* h = args.stream + row * args.hidden;
    float* norm = args.norm + (args.rank * args.rows + row) * args.hidden;
    float squares = 0;
    for (int j = lane; j < args.hidden; j += 32) squares += h[j] * h[j];
    for (int d = 16; d > 0; d /= 2) squares += __shfl_xor_sync(~0u, squares, d);
    const float factor = rsqrtf(squares / args.hidden + 1e-5f);
    for (int j = lane; j < args.hidden; j += 32) norm[j] = args.weight[j] * h[j] * factor;
  }
}

__global__ void Gather(Args args) {
  const std::int64_t n = args.rows * args.hidden;
  for (int r = 0; r < args.world; ++r) {
    if (r == args.rank) continue;
    for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) {
      args.norm[r * n + i] = args.norm_peers[r][r * n + i];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  AddUp<<<kBlocks, kThreads, 0, stream>>>(args);
  Normalise<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

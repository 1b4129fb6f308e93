// By owners: the last block of a rank to finish its gains sends the rank's share of the scalar to
// all ranks. Who has all shares knows that every peer is in the call, makes the new weights of its
// own blocks and stores them straight into the outputs of all ranks; a second flag says so.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxCtas = 64, kThreads = 512, kWarps = kThreads / 32, kData = 16384;
constexpr double kForget = 63.0 / 64;

struct Control {
  std::uint32_t calls[kMaxCtas];
  std::uint32_t finished;  // blocks, over all calls
  std::uint32_t told[kMaxRanks], stored[kMaxCtas][kMaxRanks];  // by peer: the last call
  double parts[kMaxCtas], of_ranks[kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) Kalman(Args args) {
  __shared__ double parts[kWarps];
  __shared__ bool last;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  double* gains = reinterpret_cast<double*>(args.scratch + kData);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int n = args.n, rows = args.blocks * n, lane = threadIdx.x % 32;
  const int slices = (n + kWarps - 1) / kWarps, block = blockIdx.x / slices;
  const int i = blockIdx.x % slices * kWarps + threadIdx.x / 32, row = block * n + i;
  const double* h = args.gradient + block * n;
  const double* p = args.covariance + static_cast<std::int64_t>(row) * n;
  const double noise = 4.0 * n;
  double gain = 0;
  if (i < n) {
    for (int j = lane; j < n; j += 32) gain += (p[j] + (i == j ? noise : 0)) * h[j];
  }
  for (int step = 16; step > 0; step /= 2) gain += __shfl_xor_sync(~0u, gain, step);
  if (lane == 0) {
    parts[threadIdx.x / 32] = i < n ? gain * h[i] : 0;
    if (i < n) gains[row] = gain;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    double sum = 0;
    for (const double part : parts) sum += part;
    mine->parts[blockIdx.x] = sum;
    last = FetchAddAcqRelGpu(&mine->finished, 1u) == call * gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x < args.world) {
    double sum = kForget * args.blocks;
    for (int b = 0; b < gridDim.x; ++b) sum += mine->parts[b];
    theirs->of_ranks[args.rank] = sum;
    StoreReleaseSys(&theirs->told[args.rank], call);
  }
  if (threadIdx.x < args.world) WaitAcquireSys(&mine->told[threadIdx.x], call);
  __syncthreads();
  double total = 0;
  for (int r = 0; r < args.world; ++r) total += mine->of_ranks[r];
  const double scale = 1 / total, add = scale * gain * args.error[0];
  if (i < n && lane < args.world) {
    args.weights_peers[lane][args.rank * rows + row] = args.weight[row] + add;
  }
  if (i < n) {
    for (int j = lane; j < n; j += 32) {
      const double rest = p[j] + (i == j ? noise : 0) - scale * gain * gains[block * n + j];
      args.new_covariance[static_cast<std::int64_t>(row) * n + j] = rest / kForget;
    }
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&theirs->stored[blockIdx.x][args.rank], call);
    WaitAcquireSys(&mine->stored[blockIdx.x][threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slices = (args.n + kWarps - 1) / kWarps;
  Kalman<<<static_cast<int>(args.blocks * slices), kThreads, 0, stream>>>(args);
}

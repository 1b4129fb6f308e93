// One after the other: all ranks meet after staging both inputs, both sums are added up, all meet.
#include <allranks/flags.h>
using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 16, kThreads = 256, kData = 256;

__device__ float* Staged(const Args& args, int rank, bool second) {
  return reinterpret_cast<float*>(args.scratch_peers[rank] + kData) + (second ? args.n : 0);
}

__global__ void Stage(Args args, const float* in, int n, bool second) {
  const int first = blockIdx.x * kThreads + threadIdx.x;
  float* staged = Staged(args, args.rank, second);
  for (int i = first; i < n; i += kBlocks * kThreads) staged[i] = in[i];
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

__global__ void Sum(Args args, float* out, int n, bool second) {
  const int cols = args.cols, row = args.rank / cols * cols;
  const int from = second ? args.rank % cols : row, step = second ? cols : 1;
  const int end = second ? args.world : min(args.world, row + cols);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kBlocks * kThreads) {
    float sum = 0;
    for (int r = from; r < end; r += step) sum += Staged(args, r, second)[i];
    out[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args, args.act, args.n, false);
  Stage<<<kBlocks, kThreads, 0, stream>>>(args, args.grad, args.m, true);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args, args.act_sum, args.n, false);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args, args.grad_sum, args.m, true);
  Meet<<<1, 32, 0, stream>>>(args);
}

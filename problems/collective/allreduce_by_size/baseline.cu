// One algorithm for all sizes, a kernel for each step: copy the input to where peers can read it,
// meet, add up everything, meet before the copy may be overwritten.
#include <allranks/flags.h>
using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kThreads = 256, kData = 256;

__global__ void Stage(Args args) {
  float* staged = reinterpret_cast<float*>(args.scratch + kData);
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < args.n; i += kBlocks * kThreads) staged[i] = args.in[i];
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

__global__ void Sum(Args args) {
  const int n = args.n, first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; 4 * i < n; i += kBlocks * kThreads) {
    float sum[4] = {};
    for (int r = 0; r < args.world; ++r) {
      const float4 v = reinterpret_cast<const float4*>(args.scratch_peers[r] + kData)[i];
      sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
    }
    for (int k = 0; k < 4 && 4 * i + k < n; ++k) args.out[4 * i + k] = sum[k];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

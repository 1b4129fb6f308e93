// Step by step: a kernel stages vote and input where peers can read them, all meet, the root reads
// everything and adds up, and all meet again before the stage may be overwritten.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::int32_t vote;                 // own, of this call
};
constexpr int kBlocks = 16, kThreads = 256, kData = 256;

__global__ void Stage(Args args) {
  float* staged = reinterpret_cast<float*>(args.scratch + kData);
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += kBlocks * kThreads) staged[i] = args.in[i];
  if (first == 0) reinterpret_cast<Control*>(args.scratch)->vote = *args.vote;
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
  int votes = 0;
  for (int r = 0; r < args.world; ++r) {
    votes += reinterpret_cast<const Control*>(args.scratch_peers[r])->vote;
  }
  if (args.rank != votes % args.world) return;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += kBlocks * kThreads) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += reinterpret_cast<const float*>(args.scratch_peers[r] + kData)[i];
    }
    args.out[i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

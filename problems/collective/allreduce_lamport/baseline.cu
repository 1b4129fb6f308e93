// In one shot, step by step: a kernel copies `in` to where peers can read it, all meet, a kernel
// reads everything, and all meet again before the copy may be overwritten.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
using Half = Number<__half>;
constexpr int kBlocks = 8, kThreads = 256, kData = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Stage(Args args) {
  const std::uint16_t* in = reinterpret_cast<const std::uint16_t*>(args.in);
  std::uint16_t* staged = reinterpret_cast<std::uint16_t*>(args.scratch + kData);
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < args.n; i += kBlocks * kThreads) staged[i] = in[i];
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
  const int first = blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < args.n; i += kBlocks * kThreads) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum +=
          Half::ToFloat(reinterpret_cast<const std::uint16_t*>(args.scratch_peers[r] + kData)[i]);
    }
    reinterpret_cast<std::uint16_t*>(args.out)[i] = Half::FromFloat(sum);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

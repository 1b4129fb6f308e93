// A kernel for each step: all meet, add up one's slice in one's own output, meet, collect the other
// slices from there, meet before anybody leaves.
#include <allranks/flags.h>
#include <allranks/numbers.h>
using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 32, kThreads = 256;

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

__global__ void Reduce(Args args, int slice) {
  const int end = min(static_cast<int>(args.n), (args.rank + 1) * slice);
  const int first = args.rank * slice + blockIdx.x * kThreads + threadIdx.x;
  for (int i = first; i < end; i += kBlocks * kThreads) {
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += Bf16::ToFloat(reinterpret_cast<const std::uint16_t*>(args.in_peers[r])[i]);
    }
    reinterpret_cast<std::uint16_t*>(args.out)[i] = Bf16::FromFloat(sum);
  }
}

__global__ void Collect(Args args, int slice) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    const std::uint16_t* from = reinterpret_cast<const std::uint16_t*>(args.out_peers[i / slice]);
    if (i / slice != args.rank) reinterpret_cast<std::uint16_t*>(args.out)[i] = from[i];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int slice = static_cast<int>((args.n + args.world - 1) / args.world);
  Meet<<<1, 32, 0, stream>>>(args);
  Reduce<<<kBlocks, kThreads, 0, stream>>>(args, slice);
  Meet<<<1, 32, 0, stream>>>(args);
  Collect<<<kBlocks, kThreads, 0, stream>>>(args, slice);
  Meet<<<1, 32, 0, stream>>>(args);
}

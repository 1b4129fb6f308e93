// Step by step: a kernel stores the shard into a slot at every rank, all meet, a kernel copies the
// slots to `out`, and all meet again before slots may be overwritten.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 16, kThreads = 256, kData = 256;

__device__ std::uint32_t* Slots(const Args& args, int rank) {
  return reinterpret_cast<std::uint32_t*>(args.scratch_peers[rank] + kData);
}

__global__ void Push(Args args) {
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += kBlocks * kThreads) {
    for (int r = 0; r < args.world; ++r) Slots(args, r)[args.rank * args.n + i] = args.in[i];
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

__global__ void Copy(Args args) {
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x, words = args.world * args.n;
  for (std::int64_t i = first; i < words; i += kBlocks * kThreads) {
    args.out[i] = Slots(args, args.rank)[i];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Push<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Copy<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

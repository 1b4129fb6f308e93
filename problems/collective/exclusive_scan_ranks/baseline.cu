// Step by step: one block adds up the shard and tells all ranks its sum, all meet, one block scans
// the shard beginning with the sums of the ranks below, and all meet again before sums may be
// overwritten.
#include <allranks/flags.h>

using namespace allranks;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
  std::uint32_t sums[kMaxRanks];     // by peer, of this call
};
constexpr int kThreads = 256;

// Thread t has a contiguous part of the shard.
__device__ std::uint32_t Part(const Args& args, int t) { return args.n * t / kThreads; }

__device__ std::uint32_t SumOfPart(const Args& args) {
  std::uint32_t sum = 0;
  for (std::int64_t i = Part(args, threadIdx.x); i < Part(args, threadIdx.x + 1); ++i) {
    sum += args.in[i];
  }
  return sum;
}

__global__ void Sum(Args args) {
  __shared__ std::uint32_t parts[kThreads];
  parts[threadIdx.x] = SumOfPart(args);
  __syncthreads();
  if (threadIdx.x < args.world) {
    std::uint32_t sum = 0;
    for (int t = 0; t < kThreads; ++t) sum += parts[t];
    reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x])->sums[args.rank] = sum;
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

__global__ void Scan(Args args) {
  __shared__ std::uint32_t parts[kThreads];
  parts[threadIdx.x] = SumOfPart(args);
  __syncthreads();
  std::uint32_t running = 0;
  for (int r = 0; r < args.rank; ++r) running += reinterpret_cast<Control*>(args.scratch)->sums[r];
  for (int t = 0; t < threadIdx.x; ++t) running += parts[t];
  for (std::int64_t i = Part(args, threadIdx.x); i < Part(args, threadIdx.x + 1); ++i) {
    args.out[i] = running;
    running += args.in[i];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sum<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Scan<<<1, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

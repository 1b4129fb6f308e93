#include <allranks/flags.h>

// Each step stages its input on its own device, meets all ranks, reads from all, and meets again.

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};
constexpr int kBlocks = 16, kThreads = 256;

__device__ std::uint32_t* Staged(const Args& args, int rank) {
  return reinterpret_cast<std::uint32_t*>(args.scratch_peers[rank] + 16384);
}

__global__ void Stage(Args args, const std::uint32_t* from, std::int64_t count) {
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += kBlocks * kThreads) {
    Staged(args, args.rank)[i] = from[i];
  }
}

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->arrived[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Copy(Args args) {
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.world * args.n;
       i += kBlocks * kThreads) {
    args.all[i] = Staged(args, static_cast<int>(i / args.n))[i % args.n];
  }
}

__global__ void Add(Args args) {
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.m; i += kBlocks * kThreads) {
    std::uint32_t sum = 0;
    for (int r = 0; r < args.world; ++r) sum += Staged(args, r)[i];
    args.sum[i] = sum;
  }
}

extern "C" void gather(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args, args.a, args.n);
  Meet<<<1, 32, 0, stream>>>(args);
  Copy<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

extern "C" void reduce(const Args& args, cudaStream_t stream) {
  Stage<<<kBlocks, kThreads, 0, stream>>>(args, args.b, args.m);
  Meet<<<1, 32, 0, stream>>>(args);
  Add<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}

#include <allranks/flags.h>

// Kernels per round: every request draws its tickets by a fetch-and-add at rank 0; when all ranks
// have drawn, all read the total; when all have read it, rank 0 sets the counter back.

struct Board {
  std::uint32_t counter, total;      // at rank 0: tickets given in this round; own: of the last one
  std::uint32_t arrived[kMaxRanks];  // by rank: meetings that it has come to
  std::uint32_t meetings;            // own
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void Draw(Args args, std::int64_t i) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  Board* root = reinterpret_cast<Board*>(args.scratch_peers[0]);
  const std::uint32_t before = i == 0 ? 0 : mine->total, q = threadIdx.x;
  if (q < args.requests) {
    const std::uint32_t need = 1 + (Mix(args.keys[i * args.requests + q] + before) & 15);
    args.first[i * args.requests + q] = allranks::FetchAddRelaxedSys(&root->counter, need);
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

__global__ void Read(Args args, std::int64_t i) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  Board* root = reinterpret_cast<Board*>(args.scratch_peers[0]);
  mine->total = args.total[i] = allranks::LoadRelaxedSys(&root->counter);
}

__global__ void Reset(Args args) {
  if (args.rank == 0) allranks::StoreRelaxedSys(reinterpret_cast<std::uint32_t*>(args.scratch), 0u);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    Draw<<<1, 128, 0, stream>>>(args, i);
    Meet<<<1, 32, 0, stream>>>(args);
    Read<<<1, 1, 0, stream>>>(args, i);
    Meet<<<1, 32, 0, stream>>>(args);
    Reset<<<1, 1, 0, stream>>>(args);
    Meet<<<1, 32, 0, stream>>>(args);
  }
}

#include <allranks/flags.h>

// A kernel per round. The state stays at rank 0; ranks take turns by a counter beside it.

struct Board {
  std::uint32_t state[32];  // at rank 0
  std::uint32_t turn;       // at rank 0: sections that are over, of all calls
  std::uint32_t sections;   // own: sections of all ranks in all earlier rounds
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void Section(Args args, std::int64_t i) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  Board* root = reinterpret_cast<Board*>(args.scratch_peers[0]);
  const int lane = threadIdx.x;
  const std::uint32_t turn = mine->sections + args.rank;
  allranks::WaitAcquireSys(&root->turn, turn);
  const std::uint32_t state = i == 0 && args.rank == 0 ? 0 : root->state[lane];
  std::uint32_t next = __shfl_sync(~0u, state, (lane + 1) % 32);
  for (int k = 0; k < 4; ++k) next += Mix(state + args.keys[(i * 4 + k) * 32 + lane]);
  root->state[lane] = next;
  args.seen[i * 32 + lane] = state;
  __syncwarp();
  if (lane == 0) {
    args.place[i] = i * args.world + args.rank;
    allranks::StoreReleaseSys(&root->turn, turn + 1);
    mine->sections += args.world;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (std::int64_t i = 0; i < args.rounds; ++i) Section<<<1, 32, 0, stream>>>(args, i);
}

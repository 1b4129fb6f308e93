#include <allranks/flags.h>

// A ticket lock at rank 0: one counter gives tickets by fetch-and-add, another one says which
// ticket is served; the state lies beside them. A rank draws for section i when all sections
// i - 1 are over, so nobody has a second turn before all have had the first.

struct Board {
  std::uint32_t state[32];         // at rank 0, as the others
  std::uint32_t tickets, serving;  // of all calls
  std::uint32_t sections;          // own: sections of all ranks in all earlier calls
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void Sections(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  Board* root = reinterpret_cast<Board*>(args.scratch_peers[0]);
  const int lane = threadIdx.x;
  const std::uint32_t before = mine->sections, world = args.world;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    std::uint32_t ticket = 0;
    if (lane == 0) {
      allranks::WaitAcquireSys(&root->serving, before + static_cast<std::uint32_t>(i) * world);
      ticket = allranks::FetchAddRelaxedSys(&root->tickets, 1u);
    }
    ticket = __shfl_sync(~0u, ticket, 0);
    allranks::WaitAcquireSys(&root->serving, ticket);
    const std::uint32_t state = ticket == before ? 0 : root->state[lane];
    std::uint32_t next = __shfl_sync(~0u, state, (lane + 1) % 32);
    for (int k = 0; k < 4; ++k) next += Mix(state + args.keys[(i * 4 + k) * 32 + lane]);
    root->state[lane] = next;
    __syncwarp();
    if (lane == 0) allranks::StoreReleaseSys(&root->serving, ticket + 1);
    args.seen[i * 32 + lane] = state;
    if (lane == 0) args.place[i] = ticket - before;
  }
  if (lane == 0) mine->sections = before + static_cast<std::uint32_t>(args.rounds) * world;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sections<<<1, 32, 0, stream>>>(args);
}

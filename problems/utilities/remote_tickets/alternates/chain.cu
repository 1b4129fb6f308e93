#include <allranks/flags.h>

// From rank to rank: each takes over the next free ticket from the rank before it, adds what it
// needs, and passes the sum on; the last rank tells everybody the total. The total of round r says
// that all words of round r were read.

struct Board {
  std::uint64_t next, total;  // number of the round << 32, ticket
  std::uint32_t rounds;       // own: of all earlier calls
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__device__ std::uint32_t Wait(const std::uint64_t* place, std::uint32_t round) {
  std::uint64_t word;
  do {
    word = allranks::LoadRelaxedSys(place);
  } while (word >> 32 != round);
  return static_cast<std::uint32_t>(word);
}

__global__ void Draw(Args args) {
  __shared__ std::uint32_t sum, start, all;
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const bool last = args.rank == args.world - 1;
  const int q = threadIdx.x;
  const std::uint32_t before = mine->rounds;
  if (q == 0) all = 0;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t round = before + i + 1;
    if (q == 0) sum = 0;
    __syncthreads();
    std::uint32_t place = 0;
    if (q < args.requests) {
      const std::uint32_t need = 1 + (Mix(args.keys[i * args.requests + q] + all) & 15);
      place = atomicAdd(&sum, need);
    }
    __syncthreads();
    if (q == 0) {
      start = args.rank == 0 ? 0 : Wait(&mine->next, round);
      const std::uint64_t word = std::uint64_t{round} << 32 | (start + sum);
      for (int r = last ? 0 : args.rank + 1; r < (last ? args.world : args.rank + 2); ++r) {
        Board* peer = reinterpret_cast<Board*>(args.scratch_peers[r]);
        allranks::StoreRelaxedSys(last ? &peer->total : &peer->next, word);
      }
      args.total[i] = all = Wait(&mine->total, round);
    }
    __syncthreads();
    if (q < args.requests) args.first[i * args.requests + q] = start + place;
  }
  if (q == 0) mine->rounds = before + static_cast<std::uint32_t>(args.rounds);
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Draw<<<1, 128, 0, stream>>>(args); }

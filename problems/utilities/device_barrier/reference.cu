#include <allranks/flags.h>

// One warp per rank; lane p talks to rank p. A token travels as one 64-bit word with the number of
// its round, counted over all calls. A word arrives whole, so who sees the number has the token: no
// fence and no second trip.
//
// Words of a rank exist twice, by turns. A rank sends its word of round r + 2 after it has seen all
// tokens of round r + 1, and who has made one of them has read all words of round r. This holds
// across calls, too, since numbers go on.

struct Board {
  std::uint64_t words[2][kMaxRanks];  // by turn and sender: number of the round, token
  std::uint32_t rounds;               // own: of all earlier calls
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void Rounds(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int lane = threadIdx.x, world = args.world;
  Board* peer = reinterpret_cast<Board*>(args.scratch_peers[lane % world]);
  const std::uint32_t before = mine->rounds;
  std::uint32_t all = 0, key = args.keys[lane];
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t token = __reduce_add_sync(~0u, Mix(all + key));
    const std::uint32_t round = before + i + 1, turn = round % 2;
    std::uint32_t seen = 0;
    if (lane < world) {  //@peers
      const std::uint64_t word = std::uint64_t{round} << 32 | token;
      allranks::StoreRelaxedSys(&peer->words[turn][args.rank], word);  //@send
    }
    if (i + 1 < args.rounds) key = args.keys[(i + 1) * 32 + lane];  // on its way while we wait
    if (lane < world) {
      std::uint64_t word;
      do {
        word = allranks::LoadRelaxedSys(&mine->words[turn][lane]);  //@look
      } while (word >> 32 != round);  //@wait
      seen = static_cast<std::uint32_t>(word);
      args.out[i * world + lane] = seen;
    }
    all = __reduce_add_sync(~0u, seen * (2 * lane + 1));
  }
  __syncwarp();  // all lanes have read it
  if (lane == 0) mine->rounds = before + static_cast<std::uint32_t>(args.rounds);  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Rounds<<<1, 32, 0, stream>>>(args);
}

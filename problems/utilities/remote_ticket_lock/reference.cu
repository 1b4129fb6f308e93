#include <allranks/flags.h>

// The state is the lock: it goes from rank to rank, and who has it is in its section. Even rounds
// (counted over all calls) go up the ranks, odd ones come down, so the last rank of a round is the
// first one of the next and keeps the state. One warp per rank, one lane per word of the state.
//
// A word travels with the number of its round: who sees the number has the word, without a fence.
// There is one state and one way, across calls, too: a rank's words are overwritten by a neighbour
// that has got the state back from it, after it had read them.

struct Board {
  std::uint64_t words[32];  // number of the round + 1, word of the state
  std::uint32_t rounds;     // own: of all earlier calls
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
  const int lane = threadIdx.x, last = args.world - 1;
  const std::uint32_t before = mine->rounds;
  std::uint32_t state = 0, key[4];
  for (int k = 0; k < 4; ++k) key[k] = args.keys[k * 32 + lane];
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t round = before + i;
    const bool up = round % 2 == 0;
    const int at = up ? args.rank : last - args.rank;
    if (at > 0) {
      std::uint64_t word;
      do {
        word = allranks::LoadRelaxedSys(&mine->words[lane]);  //@look
      } while (word >> 32 != round + 1);  //@wait
      state = static_cast<std::uint32_t>(word);
    } else {
      if (i == 0) state = 0;
    }
    std::uint32_t next = __shfl_sync(~0u, state, (lane + 1) % 32);
    for (int k = 0; k < 4; ++k) next += Mix(state + key[k]);
    if (at + 1 < args.world) {
      Board* peer = reinterpret_cast<Board*>(args.scratch_peers[args.rank + (up ? 1 : -1)]);
      const std::uint64_t word = std::uint64_t{round + 1} << 32 | next;
      allranks::StoreRelaxedSys(&peer->words[lane], word);  //@send
    }
    args.seen[i * 32 + lane] = state;
    if (lane == 0) args.place[i] = i * args.world + at;
    state = next;
    if (i + 1 == args.rounds) break;
    for (int k = 0; k < 4; ++k) key[k] = args.keys[((i + 1) * 4 + k) * 32 + lane];
  }
  __syncwarp();                                                                    //@counted
  if (lane == 0) mine->rounds = before + static_cast<std::uint32_t>(args.rounds);  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sections<<<1, 32, 0, stream>>>(args);
}

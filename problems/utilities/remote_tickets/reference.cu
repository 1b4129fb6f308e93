#include <allranks/flags.h>

// There is no counter to go to and back: ranks tell each other how many tickets they need, in one
// trip, and each computes where its own begin: rank after rank, lane after lane. One warp per rank;
// lane p talks to rank p, and lane l has requests l, l + 32, ...
//
// A sum travels as one 64-bit word with the number of its round, counted over all calls. Words
// exist twice, by turns: a rank sends its word of round r + 2 after it has all words of round
// r + 1, and who has sent one of them has read all words of round r.

constexpr int kPerLane = 4;  // of at most 128 requests

struct Board {
  std::uint64_t words[2][kMaxRanks];  // by turn and rank: number of the round, tickets it needs
  std::uint32_t rounds;               // own: of all earlier calls
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void Draw(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int lane = threadIdx.x, requests = static_cast<int>(args.requests);
  Board* peer = reinterpret_cast<Board*>(args.scratch_peers[lane % args.world]);
  const std::uint32_t before = mine->rounds;
  std::uint32_t all = 0, key[kPerLane] = {};
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    if (lane + 32 * k < requests) key[k] = args.keys[lane + 32 * k];
  }
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    std::uint32_t need[kPerLane], own = 0;
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      need[k] = lane + 32 * k < requests ? 1 + (Mix(key[k] + all) & 15) : 0;
      own += need[k];
    }
    const std::uint32_t sum = __reduce_add_sync(~0u, own);
    const std::uint32_t round = before + i + 1, turn = round % 2;
    if (lane < args.world) {  //@peers
      allranks::StoreRelaxedSys(&peer->words[turn][args.rank],
                                std::uint64_t{round} << 32 | sum);  //@send
    }
    // While the words are on their way: the next keys, and each lane's place on this rank.
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (i + 1 < args.rounds && lane + 32 * k < requests) {
        key[k] = args.keys[(i + 1) * requests + lane + 32 * k];
      }
    }
    std::uint32_t scan = own;
    for (int step = 1; step < 32; step *= 2) {
      const std::uint32_t lower = __shfl_up_sync(~0u, scan, step);
      if (lane >= step) scan += lower;
    }
    std::uint64_t word = 0;
    if (lane < args.world) {
      do {
        word = allranks::LoadRelaxedSys(&mine->words[turn][lane]);  //@look
      } while (word >> 32 != round);  //@wait
    }
    const std::uint32_t theirs = static_cast<std::uint32_t>(word);
    all = __reduce_add_sync(~0u, theirs);
    std::uint32_t ticket = scan - own;
    ticket += __reduce_add_sync(~0u, lane < args.rank ? theirs : 0);
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (lane + 32 * k < requests) args.first[i * requests + lane + 32 * k] = ticket;
      ticket += need[k];
    }
    if (lane == 0) args.total[i] = all;
  }
  __syncwarp();                                                                    //@counted
  if (lane == 0) mine->rounds = before + static_cast<std::uint32_t>(args.rounds);  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Draw<<<1, 32, 0, stream>>>(args); }

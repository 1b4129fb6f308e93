#include <allranks/flags.h>

// By a counter at rank 0: a rank draws for all its requests with one fetch-and-add, and counts
// itself in the upper half of the same word. Who comes last in a round knows the total and sends it
// to everybody. The counter is never set back: a total of all rounds so far is subtracted.

constexpr int kPerLane = 4;

struct Board {
  std::uint64_t counter;   // at rank 0: ranks that have drawn << 40, tickets given; in all rounds
  std::uint64_t finished;  // number of the round << 32, tickets given in all rounds
  std::uint32_t rounds;    // own: of all earlier calls
  std::uint32_t given;     // own: tickets in all earlier calls
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
  Board* root = reinterpret_cast<Board*>(args.scratch_peers[0]);
  const int lane = threadIdx.x, requests = static_cast<int>(args.requests);
  Board* peer = reinterpret_cast<Board*>(args.scratch_peers[lane % args.world]);
  const std::uint32_t before = mine->rounds;
  std::uint32_t given = mine->given, all = 0;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    std::uint32_t need[kPerLane], own = 0;
    for (int k = 0; k < kPerLane; ++k) {
      const int q = lane + 32 * k;
      need[k] = q < requests ? 1 + (Mix(args.keys[i * requests + q] + all) & 15) : 0;
      own += need[k];
    }
    std::uint32_t scan = own;
    for (int step = 1; step < 32; step *= 2) {
      const std::uint32_t lower = __shfl_up_sync(~0u, scan, step);
      if (lane >= step) scan += lower;
    }
    const std::uint32_t sum = __shfl_sync(~0u, scan, 31), round = before + i + 1;
    std::uint64_t drawn = 0;
    if (lane == 0)
      drawn = allranks::FetchAddRelaxedSys(&root->counter, std::uint64_t{1} << 40 | sum);
    drawn = __shfl_sync(~0u, drawn, 0);
    const std::uint32_t start = static_cast<std::uint32_t>(drawn);
    if ((drawn >> 40) + 1 == (std::uint64_t{round} * args.world & 0xffffff) && lane < args.world) {
      allranks::StoreRelaxedSys(&peer->finished, std::uint64_t{round} << 32 | (start + sum));
    }
    std::uint32_t ticket = start - given + scan - own;
    for (int k = 0; k < kPerLane; ++k) {
      if (lane + 32 * k < requests) args.first[i * requests + lane + 32 * k] = ticket;
      ticket += need[k];
    }
    std::uint64_t word;
    do {
      word = allranks::LoadRelaxedSys(&mine->finished);
    } while (word >> 32 != round);
    all = static_cast<std::uint32_t>(word) - given;
    given += all;
    if (lane == 0) args.total[i] = all;
    __syncwarp();
  }
  if (lane == 0) {
    mine->rounds = before + static_cast<std::uint32_t>(args.rounds);
    mine->given = given;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) { Draw<<<1, 32, 0, stream>>>(args); }

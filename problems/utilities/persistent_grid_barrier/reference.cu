#include <allranks/flags.h>

// The barrier of all blocks of all GPUs and the sum are one step. Every block sends its part of the
// sum to every rank, as one word with the number of the round (over all calls), and every block
// collects the parts of all blocks of all ranks in its own device's memory. So a round is one trip
// across a link: there is no leader, no second step on the device, and no fence.
//
// Words exist twice, by turns. A block sends its word of round r + 2 after it has the parts of all
// blocks for round r + 1, and who has sent one of them has read all words of round r.

constexpr int kBlocks = 4, kThreads = 128, kWarps = kThreads / 32, kKept = 8;
static_assert(kMaxRanks * kBlocks <= 32);  // one warp waits for all words

struct Board {
  std::uint64_t words[2][kMaxRanks][kBlocks];  // by turn, rank, block: number of the round, part
  std::uint32_t rounds[kBlocks];               // own: of all earlier calls
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void __launch_bounds__(kThreads) Sums(Args args) {
  __shared__ std::uint32_t of_warps[kWarps], of_all;
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int thread = threadIdx.x, world = args.world;
  Board* peer = reinterpret_cast<Board*>(args.scratch_peers[thread % world]);
  const std::uint32_t before = mine->rounds[blockIdx.x];
  const int n = static_cast<int>(args.n), stride = kBlocks * kThreads;
  const int first = blockIdx.x * kThreads + thread;
  std::uint32_t x[kKept];  // further words are read again in each round
#pragma unroll
  for (int k = 0; k < kKept; ++k) x[k] = first + k * stride < n ? args.x[first + k * stride] : 0;

  std::uint32_t total = 0;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    std::uint32_t sum = 0;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      if (first + k * stride < n) sum += Mix(x[k] + total);
    }
    for (int j = first + kKept * stride; j < n; j += stride) sum += Mix(args.x[j] + total);
    sum = __reduce_add_sync(~0u, sum);
    if (thread % 32 == 0) of_warps[thread / 32] = sum;
    __syncthreads();  //@summed

    const std::uint32_t round = before + i + 1, turn = round % 2;
    if (thread < 32) {
      const std::uint32_t part = __reduce_add_sync(~0u, thread < kWarps ? of_warps[thread] : 0);
      if (thread < world) {
        allranks::StoreRelaxedSys(&peer->words[turn][args.rank][blockIdx.x],
                                  std::uint64_t{round} << 32 | part);  //@send
      }
      const std::uint64_t* place = &mine->words[turn][0][0] + thread;
      std::uint64_t word = 0;
      if (thread < world * kBlocks) {
        do {
          word = allranks::LoadRelaxedSys(place);  //@look
        } while (word >> 32 != round);  //@wait
      }
      const std::uint32_t theirs = static_cast<std::uint32_t>(word);
      total = __reduce_add_sync(~0u, theirs);
      if (thread == 0) of_all = total;
    }
    __syncthreads();  //@met
    total = of_all;
    if (first == 0) args.out[i] = total;
  }
  if (thread == 0) mine->rounds[blockIdx.x] = before + std::uint32_t(args.rounds);  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sums<<<kBlocks, kThreads, 0, stream>>>(args);
}

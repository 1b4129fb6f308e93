#include <allranks/flags.h>

// In two levels: blocks add their parts to a sum of the device and count themselves; the block that
// comes last exchanges the device's sum with the other ranks and publishes the total with the
// number of the round, for which all blocks wait. Sums of the device exist twice, by turns.

constexpr int kBlocks = 4, kThreads = 128;

struct Board {
  std::uint64_t words[2][kMaxRanks];  // by turn and rank: number of the round, sum of its device
  std::uint64_t total;                // own: number of the round, total
  std::uint32_t sums[2];              // own, by turn: sum of this device so far
  std::uint32_t arrived;              // own: blocks that have come, in all rounds
  std::uint32_t rounds[kBlocks];      // own: of all earlier calls
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void __launch_bounds__(kThreads) Sums(Args args) {
  __shared__ std::uint32_t sum_of_block;
  __shared__ std::uint32_t total_of_all;
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const int thread = threadIdx.x, world = args.world;
  const std::uint32_t before = mine->rounds[blockIdx.x];
  std::uint32_t total = 0;
  for (std::int64_t i = 0; i < args.rounds; ++i) {
    const std::uint32_t round = before + i + 1, turn = round % 2;
    if (thread == 0) sum_of_block = 0;
    __syncthreads();
    std::uint32_t sum = 0;
    for (std::int64_t j = blockIdx.x * kThreads + thread; j < args.n; j += kBlocks * kThreads) {
      sum += Mix(args.x[j] + total);
    }
    sum = __reduce_add_sync(~0u, sum);
    if (thread % 32 == 0) atomicAdd(&sum_of_block, sum);
    __syncthreads();
    if (thread < 32) {
      std::uint32_t arrived = 0;
      if (thread == 0) {
        atomicAdd(&mine->sums[turn], sum_of_block);
        arrived = allranks::FetchAddAcqRelGpu(&mine->arrived, 1u) + 1;
      }
      __syncwarp();
      arrived = __shfl_sync(~0u, arrived, 0);
      if (arrived == round * kBlocks) {
        const std::uint32_t device = allranks::LoadRelaxedGpu(&mine->sums[turn]);
        std::uint64_t word = 0;
        if (thread < world) {
          Board* peer = reinterpret_cast<Board*>(args.scratch_peers[thread]);
          word = std::uint64_t{round} << 32 | device;
          allranks::StoreRelaxedSys(&peer->words[turn][args.rank], word);
          do {
            word = allranks::LoadRelaxedSys(&mine->words[turn][thread]);
          } while (word >> 32 != round);
        }
        sum = __reduce_add_sync(~0u, static_cast<std::uint32_t>(word));
        __syncwarp();
        if (thread == 0) {
          allranks::StoreRelaxedGpu(&mine->sums[turn], 0u);
          allranks::StoreReleaseGpu(&mine->total, std::uint64_t{round} << 32 | sum);
        }
      }
      if (thread == 0) {
        std::uint64_t word;
        do {
          word = allranks::LoadAcquireGpu(&mine->total);
        } while (word >> 32 != round);
        total_of_all = static_cast<std::uint32_t>(word);
      }
    }
    __syncthreads();
    total = total_of_all;
    if (blockIdx.x == 0 && thread == 0) args.out[i] = total;
  }
  __syncthreads();
  if (thread == 0) mine->rounds[blockIdx.x] = before + static_cast<std::uint32_t>(args.rounds);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sums<<<kBlocks, kThreads, 0, stream>>>(args);
}

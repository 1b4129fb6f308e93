#include <allranks/flags.h>

// One counter per rank, to which all blocks of all ranks add: a block stores its part at every
// rank, adds one to every counter with release, and waits until its own rank's counter has come to
// all blocks times the number of the round. Parts exist twice, by turns: the counter of round r + 1
// says that all parts of round r were read.

constexpr int kBlocks = 4, kThreads = 128;

struct Board {
  std::uint32_t parts[2][kMaxRanks][kBlocks];
  std::uint32_t arrivals;         // of all blocks of all ranks in all rounds
  std::uint32_t rounds[kBlocks];  // own: of all earlier calls
};

__device__ std::uint32_t Mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  return x ^ x >> 16;
}

__global__ void __launch_bounds__(kThreads) Sums(Args args) {
  __shared__ std::uint32_t sum_of_block, of_all;
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
    atomicAdd(&sum_of_block, sum);
    __syncthreads();
    if (thread < 32) {
      if (thread < world) {
        Board* peer = reinterpret_cast<Board*>(args.scratch_peers[thread]);
        peer->parts[turn][args.rank][blockIdx.x] = sum_of_block;
        allranks::AddReleaseSys(&peer->arrivals, 1u);
      }
      allranks::WaitAcquireSys(&mine->arrivals, round * world * kBlocks);
      sum = thread < world * kBlocks ? mine->parts[turn][thread / kBlocks][thread % kBlocks] : 0;
      sum = __reduce_add_sync(~0u, sum);
      __syncwarp();  // all parts were read before the next addition
      if (thread == 0) of_all = sum;
    }
    __syncthreads();
    total = of_all;
    if (blockIdx.x == 0 && thread == 0) args.out[i] = total;
  }
  if (thread == 0) mine->rounds[blockIdx.x] = before + static_cast<std::uint32_t>(args.rounds);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Sums<<<kBlocks, kThreads, 0, stream>>>(args);
}

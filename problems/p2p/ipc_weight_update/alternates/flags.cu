#include <allranks/flags.h>

// Plain words in place. A trainer's block that has stored its part of some rows sets a flag at
// their reader; when the flags of all ranks are there, the reader's block answers from memory, a
// warp for each row and query, and gives its rows back only when they have been answered.
using namespace allranks;
constexpr int kMaxBlocks = 16, kThreads = 256;

struct Control {
  std::uint32_t done[2 * kMaxBlocks];           // own, by block: versions of earlier calls
  std::uint32_t credit[kMaxRanks][kMaxBlocks];  // by reader: versions that it has answered
  std::uint32_t there[kMaxRanks][kMaxBlocks];   // by trainer: versions that it has stored
};
static_assert(sizeof(Control) <= 2048);

__device__ Control* ControlAt(std::uint8_t* mapped) { return reinterpret_cast<Control*>(mapped); }

__global__ void __launch_bounds__(kThreads) Update(Args args) {
  const int t = threadIdx.x, world = args.world, rank = args.rank, blocks = gridDim.x / 2;
  const bool serves = blockIdx.x < blocks;
  const int b = serves ? blockIdx.x : blockIdx.x - blocks;
  const std::int64_t own = (args.rows - b + blocks - 1) / blocks, columns = world * args.part;
  Control* mine = ControlAt(args.mapped);
  Control* peer = ControlAt(args.mapped_peers[t % world]);
  const std::uint32_t done = mine->done[blockIdx.x];
  for (int v = 0; v < args.versions; ++v) {
    const std::uint32_t number = done + v + 1;
    if (t < world) {
      const std::uint32_t* flag = serves ? &mine->there[t][b] : &mine->credit[t][b];
      WaitAcquireSys(flag, serves ? number : number - 1);
    }
    __syncthreads();
    if (serves) {
      for (std::int64_t i = t / 32; i < own * args.queries; i += kThreads / 32) {
        const std::int64_t row = b + i / args.queries * blocks, q = i % args.queries;
        const auto* words = reinterpret_cast<std::uint32_t*>(args.mapped + 2048) + row * columns;
        std::uint32_t sum = 0;
        for (int c = t % 32; c < columns; c += 32) sum += words[c] * args.x[q * columns + c];
        sum = __reduce_add_sync(~0u, sum);
        if (t % 32 == 0) args.out[(v * args.queries + q) * args.rows + row] = sum;
      }
    } else {
      for (std::int64_t i = t; i < world * own * args.part; i += kThreads) {
        const std::int64_t k = i % args.part, row = b + i / args.part % own * blocks;
        const std::int64_t target = i / args.part / own;
        auto* words = reinterpret_cast<std::uint32_t*>(args.mapped_peers[target] + 2048);
        words[row * columns + rank * args.part + k] =
            args.in[((v * world + target) * args.rows + row) * args.part + k];
      }
    }
    __syncthreads();
    if (t < world) StoreReleaseSys(serves ? &peer->credit[rank][b] : &peer->there[rank][b], number);
  }
  if (t == 0) mine->done[blockIdx.x] = done + args.versions;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = args.rows < kMaxBlocks ? static_cast<int>(args.rows) : kMaxBlocks;
  Update<<<2 * blocks, kThreads, 0, stream>>>(args);
}

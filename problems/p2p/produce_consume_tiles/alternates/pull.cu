#include <allranks/flags.h>

// By reading: producers leave tiles in their own memory, transposed already, and consumers read
// them over the link.
using namespace allranks;

constexpr int kSlots = 8, kThreads = 256, kSide = 16;  // tiles of kSide x kSide words

struct Ring {
  std::uint32_t tiles[kSlots][kSide * kSide];
  std::uint32_t full[kSlots], free[kSlots];          // by producer and consumer: turns so far
  std::uint32_t produced[kSlots], consumed[kSlots];  // own: turns of earlier calls
};

__global__ void __launch_bounds__(kThreads) Stage(Args args) {
  const int slot = blockIdx.x % kSlots, rows = args.rows, cols = args.cols;
  const bool produces = blockIdx.x < kSlots;
  const int other = produces ? 1 : args.world - 1;
  Ring* mine = reinterpret_cast<Ring*>(args.scratch);
  Ring* peer = reinterpret_cast<Ring*>(args.scratch_peers[(args.rank + other) % args.world]);
  std::uint32_t* before = produces ? &mine->produced[slot] : &mine->consumed[slot];
  std::uint32_t turn = *before;
  const int per_row = (cols + kSide - 1) / kSide, tiles = (rows + kSide - 1) / kSide * per_row;
  for (int tile = slot; tile < tiles; tile += kSlots) {
    if (threadIdx.x == 0) {
      WaitAcquireSys(produces ? &mine->free[slot] : &mine->full[slot], produces ? turn : turn + 1);
    }
    __syncthreads();
    ++turn;
    std::uint32_t* word = &(produces ? mine : peer)->tiles[slot][threadIdx.x];
    const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
    const int row = tile / per_row * kSide + x, col = tile % per_row * kSide + y;
    if (row < rows && col < cols) {
      if (produces) {
        *word = (2 * args.scale[row] + 1) * args.in[row * cols + col];
      } else {
        args.out[col * rows + row] = *word + args.bias[col];
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseSys(produces ? &peer->full[slot] : &peer->free[slot], turn);
  }
  __syncthreads();
  if (threadIdx.x == 0) *before = turn;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<2 * kSlots, kThreads, 0, stream>>>(args);
}

#include <allranks/flags.h>

// One block, and the whole of scratch as a single slot: produce as many words as fit, publish them,
// wait for those of the rank before, consume them, give the slot back and wait for the other one.
using namespace allranks;

constexpr int kThreads = 256, kWords = 2048;

struct Slot {
  std::uint32_t words[kWords];
  std::uint32_t turns;  // own: of earlier calls
  std::uint32_t full, empty;
};

__global__ void Stage(Args args) {
  Slot* mine = reinterpret_cast<Slot*>(args.scratch);
  Slot* target = reinterpret_cast<Slot*>(args.scratch_peers[(args.rank + 1) % args.world]);
  Slot* source =
      reinterpret_cast<Slot*>(args.scratch_peers[(args.rank + args.world - 1) % args.world]);
  const int rows = args.rows, cols = args.cols, all = rows * cols;
  std::uint32_t turn = mine->turns;
  for (int first = 0; first < all; first += kWords) {
    ++turn;
    const int count = all - first < kWords ? all - first : kWords;
    for (int i = threadIdx.x; i < count; i += kThreads) {
      target->words[i] = (2 * args.scale[(first + i) / cols] + 1) * args.in[first + i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&target->full, turn);
      WaitAcquireSys(&mine->full, turn);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const int row = (first + i) / cols, col = (first + i) % cols;
      args.out[col * rows + row] = mine->words[i] + args.bias[col];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&source->empty, turn);
      WaitAcquireSys(&mine->empty, turn);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) mine->turns = turn;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<1, kThreads, 0, stream>>>(args);
}

#include <allranks/flags.h>

// One block, and the ring as a single slot: fill the next rank's, wait for the own one to be full,
// empty it, say so, wait until the other is empty.
using namespace allranks;

constexpr int kThreads = 256, kWords = 1024;

struct Ring {
  std::uint32_t slot[kWords];
  std::uint32_t turns;  // own: of earlier calls
  std::uint32_t full, empty;
};

__global__ void Pass(Args args) {
  Ring* mine = reinterpret_cast<Ring*>(args.scratch);
  Ring* target = reinterpret_cast<Ring*>(args.scratch_peers[(args.rank + 1) % args.world]);
  Ring* source =
      reinterpret_cast<Ring*>(args.scratch_peers[(args.rank + args.world - 1) % args.world]);
  std::uint32_t turn = mine->turns;
  for (std::int64_t first = 0; first < args.n; first += kWords) {
    ++turn;
    const int count = args.n - first < kWords ? args.n - first : kWords;
    for (int i = threadIdx.x; i < count; i += kThreads) target->slot[i] = args.in[first + i];
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&target->full, turn);
      WaitAcquireSys(&mine->full, turn);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kThreads) args.out[first + i] = mine->slot[i];
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
  Pass<<<1, kThreads, 0, stream>>>(args);
}

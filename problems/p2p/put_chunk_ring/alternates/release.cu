#include <allranks/flags.h>

// Four slots of 1 KB with ordinary data, published by a release and given back by one. Each slot
// has a block that sends and one that takes; the flags count turns on through all calls.
using namespace allranks;

constexpr int kSlots = 4, kThreads = 64, kWords = 256;

struct Ring {
  uint4 slots[kSlots][kWords / 4];
  std::uint32_t full[kSlots], free[kSlots];   // by sender and receiver: turns so far
  std::uint32_t sent[kSlots], taken[kSlots];  // own: turns of earlier calls
};

__global__ void Pass(Args args) {
  const int slot = blockIdx.x % kSlots, n = args.n;
  const bool sends = blockIdx.x < kSlots;
  const int other = sends ? 1 : args.world - 1;
  Ring* mine = reinterpret_cast<Ring*>(args.scratch);
  Ring* peer = reinterpret_cast<Ring*>(args.scratch_peers[(args.rank + other) % args.world]);
  std::uint32_t* before = sends ? &mine->sent[slot] : &mine->taken[slot];
  std::uint32_t turn = *before;
  const int in_slot = 4 * threadIdx.x;
  for (int first = slot * kWords; first < n; first += kSlots * kWords) {
    const int at = first + in_slot;
    if (threadIdx.x == 0) {
      WaitAcquireSys(sends ? &mine->free[slot] : &mine->full[slot], sends ? turn : turn + 1);
    }
    __syncthreads();
    ++turn;
    uint4* place = &(sends ? peer : mine)->slots[slot][threadIdx.x];
    if (at + 4 <= n) {
      if (sends) {
        *place = *reinterpret_cast<const uint4*>(args.in + at);
      } else {
        *reinterpret_cast<uint4*>(args.out + at) = *place;
      }
    } else {
      for (int i = 0; at + i < n; ++i) {
        std::uint32_t* word = reinterpret_cast<std::uint32_t*>(place) + i;
        if (sends) {
          *word = args.in[at + i];
        } else {
          args.out[at + i] = *word;
        }
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseSys(sends ? &peer->full[slot] : &peer->free[slot], turn);
  }
  __syncthreads();
  if (threadIdx.x == 0) *before = turn;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Pass<<<2 * kSlots, kThreads, 0, stream>>>(args);
}

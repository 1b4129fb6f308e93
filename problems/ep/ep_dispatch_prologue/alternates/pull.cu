// By reading: once all ranks are inside the call, block d counts everyone's choices of the experts
// of rank d itself. Nobody leaves before all have read.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kWarps = kThreads / 32, kMaxPer = 32;

struct Control {
  std::uint32_t calls[kMaxRanks];
  std::uint32_t entered[kMaxRanks][kMaxRanks];  // by block and peer: the last call it has entered
  std::uint32_t read[kMaxRanks][kMaxRanks];     // by block and peer: the last call it has read
};

__global__ void __launch_bounds__(kThreads) Prologue(Args args) {
  __shared__ int coming[kMaxRanks][kMaxPer], next[kWarps][kMaxPer];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x % args.world]);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int rank = args.rank, world = args.world, per = static_cast<int>(args.per);
  const int holder = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int items = static_cast<int>(args.tokens * args.topk);
  const int run = (items + kWarps - 1) / kWarps, end = min((warp + 1) * run, items);
  coming[warp][lane] = next[warp][lane] = 0;
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->entered[holder][rank], call);
    WaitAcquireSys(&mine->entered[holder][threadIdx.x], call);
  }
  __syncthreads();
  for (int i = warp * run + lane; i < end; i += 32) {
    for (int s = 0; s < world; ++s) {
      const int expert = args.ids_peers[s][i] - holder * per;
      if (expert < 0 || expert >= per) continue;
      atomicAdd(&coming[s][expert], 1);
      if (s == rank) atomicAdd(&next[warp][expert], 1);
    }
  }
  __syncthreads();
  const int e = threadIdx.x;
  if (e < per) {
    int base = 0, total = 0;
    for (int s = 0; s < world; ++s) {
      if (s == rank) base = total;
      total += coming[s][e];
    }
    if (holder == rank) args.received[e] = total;
    for (int w = 0; w < kWarps; ++w) {
      const int count = next[w][e];
      next[w][e] = base;
      base += count;
    }
  }
  __syncthreads();
  for (int first = warp * run; first < end; first += 32) {
    const int i = first + lane, expert = i < end ? args.ids[i] - holder * per : -1;
    const bool here = expert >= 0 && expert < per;
    const std::uint32_t same = __match_any_sync(~0u, here ? expert : -1);
    const int earlier = __popc(same & ((1u << lane) - 1));
    if (here) args.slots[i] = next[warp][expert] + earlier;
    __syncwarp();
    if (here && earlier == 0) next[warp][expert] += __popc(same);
    __syncwarp();
  }
  __syncthreads();
  if (threadIdx.x < world) {
    StoreReleaseSys(&peer->read[holder][rank], call);
    WaitAcquireSys(&mine->read[holder][threadIdx.x], call);
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Prologue<<<args.world, kThreads, 0, stream>>>(args);
}

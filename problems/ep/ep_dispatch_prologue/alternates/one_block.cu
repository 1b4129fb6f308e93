// One block with counts of all experts by warp. Totals are pushed to all peers by plain stores, in
// tables that take turns, and a flag per peer says that its table has come.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 512, kWarps = kThreads / 32, kMaxExperts = 512;

struct Control {
  std::uint32_t calls;
  std::uint32_t told[kMaxRanks];  // by peer: the last call whose counts are here
  std::int32_t table[2][kMaxRanks][kMaxExperts];
};

__global__ void __launch_bounds__(kThreads) Prologue(Args args) {
  __shared__ int next[kWarps][kMaxExperts];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  const int rank = args.rank, world = args.world, per = static_cast<int>(args.per);
  const int e = threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int items = static_cast<int>(args.tokens * args.topk);
  const int run = (items + kWarps - 1) / kWarps, end = min((warp + 1) * run, items);
  for (int w = 0; w < kWarps; ++w) next[w][e] = 0;
  __syncthreads();
  for (int i = warp * run + lane; i < end; i += 32) atomicAdd(&next[warp][args.ids[i]], 1);
  __syncthreads();
  if (e < world * per) {
    int total = 0;
    for (int w = 0; w < kWarps; ++w) total += next[w][e];
    for (int r = 0; r < world; ++r) {
      reinterpret_cast<Control*>(args.scratch_peers[r])->table[call % 2][rank][e] = total;
    }
  }
  __syncthreads();
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->told[rank], call);
    WaitAcquireSys(&mine->told[threadIdx.x], call);
  }
  __syncthreads();
  if (e < world * per) {
    int base = 0, total = 0;
    for (int s = 0; s < world; ++s) {
      if (s == rank) base = total;
      total += mine->table[call % 2][s][e];
    }
    if (e / per == rank) args.received[e - rank * per] = total;
    for (int w = 0; w < kWarps; ++w) {
      const int count = next[w][e];
      next[w][e] = base;
      base += count;
    }
  }
  __syncthreads();
  for (int first = warp * run; first < end; first += 32) {
    const int i = first + lane, expert = i < end ? args.ids[i] : -1;
    const std::uint32_t same = __match_any_sync(~0u, expert);
    const int earlier = __popc(same & ((1u << lane) - 1));
    if (i < end) args.slots[i] = next[warp][expert] + earlier;
    __syncwarp();
    if (i < end && earlier == 0) next[warp][expert] += __popc(same);
    __syncwarp();
  }
  if (threadIdx.x == 0) mine->calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Prologue<<<1, kThreads, 0, stream>>>(args);
}

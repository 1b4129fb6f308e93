// Block d deals with the experts of rank d, so that no block needs another of its own rank. Choices
// are cut into one run per warp. First warps count their runs; then counts are exchanged with the
// blocks d of all ranks, as words of a count and the number of the call, which need no fence; from
// these and the warps before it each warp knows its first slot of every expert. At last warps go
// through their runs again and hand out slots: a match tells which lanes have the same expert.
//
// Two tables take turns. A peer writes into the table of call k again in call k + 2, after it has
// had this rank's words of call k + 1, which were sent after all of call k was read.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kWarps = kThreads / 32, kMaxPer = kThreads / kMaxRanks;

struct Control {
  std::uint64_t calls[kMaxRanks];                         // that this block has completed
  std::uint64_t table[2][kMaxRanks][kMaxPer][kMaxRanks];  // by holder, expert and source
};

__global__ void __launch_bounds__(kThreads) Prologue(Args args) {
  __shared__ int next[kWarps][kMaxPer];       // counts of warps, later their next free slots
  __shared__ int coming[kMaxPer][kMaxRanks];  // counts of ranks
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, per = static_cast<int>(args.per);
  const int holder = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int items = static_cast<int>(args.tokens * args.topk);
  const int run = (items + kWarps - 1) / kWarps;
  const int begin = warp * run, end = min(begin + run, items);

  for (int i = threadIdx.x; i < kWarps * kMaxPer; i += kThreads) next[i / kMaxPer][i % kMaxPer] = 0;
  __syncthreads();  //@zeroed
#pragma unroll 4
  for (int i = begin + lane; i < end; i += 32) {
    const int expert = args.ids[i] - holder * per;
    if (expert >= 0 && expert < per) atomicAdd(&next[warp][expert], 1);
  }
  __syncthreads();  //@counted

  int id = begin + lane < end ? args.ids[begin + lane] : -1;  // on its way while we wait
  const int e = threadIdx.x / kMaxRanks, source = threadIdx.x % kMaxRanks;
  if (e < per && source < world) {
    std::uint64_t word = call << 32;
    for (int w = 0; w < kWarps; ++w) word += next[w][e];
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[source]);
    StoreRelaxedSys(&peer->table[call % 2][holder][e][rank], word);  //@send
    do {
      word = LoadRelaxedSys(&mine->table[call % 2][holder][e][source]);  //@look
    } while (word >> 32 != call);  //@wait
    coming[e][source] = static_cast<int>(word);
  }
  __syncthreads();  //@arrived
  if (e < per && source == 0) {
    int base = 0, total = 0;
    for (int s = 0; s < world; ++s) {
      if (s < rank) base += coming[e][s];
      total += coming[e][s];
    }
    if (holder == rank) args.received[e] = total;
    for (int w = 0; w < kWarps; ++w) {
      const int count = next[w][e];
      next[w][e] = base;
      base += count;
    }
  }
  __syncthreads();  //@placed

  for (int first = begin; first < end; first += 32) {
    const int i = first + lane;
    const int expert = id - holder * per;
    const bool here = i < end && expert >= 0 && expert < per;
    if (i + 32 < end) id = args.ids[i + 32];
    const std::uint32_t same = __match_any_sync(~0u, here ? expert : -1);
    const int earlier = __popc(same & ((1u << lane) - 1));
    if (here) args.slots[i] = next[warp][expert] + earlier;
    __syncwarp();  //@read
    if (here && earlier == 0) next[warp][expert] += __popc(same);
    __syncwarp();  //@moved
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Prologue<<<args.world, kThreads, 0, stream>>>(args);
}

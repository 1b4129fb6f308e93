// Nothing is sent: when all ranks have entered, every block reads all choices and rooms, and fetches
// the rows that fit from the peers' inputs, a warp each. A rank leaves when the same block of every
// peer has read what it needed.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 16, kThreads = 256, kWarps = kBlocks * kThreads / 32, kMaxItems = 512;

struct Control {
  std::uint32_t calls[kBlocks];
  std::uint32_t entered[kBlocks][kMaxRanks];
  std::uint32_t done[kBlocks][kMaxRanks];
};

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ std::uint32_t chosen[kMaxItems];  // by rank and token: bits of experts
  __shared__ int room[32];
  const int t = threadIdx.x, lane = t % 32, block = blockIdx.x, per = static_cast<int>(args.per);
  const int tokens = static_cast<int>(args.tokens), topk = static_cast<int>(args.topk);
  const int experts = args.world * per, rows = args.world * tokens;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const auto theirs = [&] { return reinterpret_cast<Control*>(args.scratch_peers[t]); };
  const std::uint32_t call = mine->calls[block] + 1;
  if (t < args.world) {
    StoreReleaseSys(&theirs()->entered[block][args.rank], call);
    WaitAcquireSys(&mine->entered[block][t], call);
  }
  __syncthreads();
  for (int item = t; item < rows; item += kThreads) {
    std::uint32_t bits = 0;
#pragma unroll 4
    for (int k = 0; k < topk; ++k) bits |= 1u << args.ids_peers[item / tokens][item % tokens * topk + k];
    chosen[item] = bits;
  }
  if (t < experts) room[t] = args.room_peers[t / per][t % per];
  __syncthreads();
  // A warp has an item: lane e walks through all items before and counts those of expert e.
  const int vectors = static_cast<int>(args.hidden / 8);
  for (int item = t / 32 * kBlocks + block; item < rows; item += kWarps) {
    int place = 0;
    for (int i = 0; i < item; ++i) place += chosen[i] >> lane & 1;
    const bool here = (chosen[item] >> lane & 1) != 0 && place < room[lane];
    const std::uint32_t fits = __ballot_sync(~0u, here);
    const int source = item / tokens, token = item % tokens;
    if (lane == 0) args.fits[item] = fits;
    for (int k = 0; source == args.rank && k < topk; ++k) {
      const int slot = token * topk + k;
      if (lane == args.ids[slot]) args.slots[slot] = here ? place : -1;
    }
    for (int e = 0; e < per; ++e) {
      if ((fits >> (args.rank * per + e) & 1) == 0) continue;
      const std::int64_t row = e * args.most + __shfl_sync(~0u, place, args.rank * per + e);
      const uint4* from = reinterpret_cast<const uint4*>(args.x_peers[source]) + token * vectors;
      uint4* to = reinterpret_cast<uint4*>(args.recv_x) + row * vectors;
      for (int v = lane; v < vectors; v += 32) to[v] = from[v];
      if (lane == 0) args.recv_from[row] = item;
    }
  }
  __syncthreads();
  if (t < args.world) {
    StoreReleaseSys(&theirs()->done[block][args.rank], call);
    WaitAcquireSys(&mine->done[block][t], call);
  }
  if (t == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<kBlocks, kThreads, 0, stream>>>(args);
}

// Block i pushes slot i to its new place with plain stores, then keeps the slot that comes to place
// i. Staging places are those of the new slots; the spare one is not used. A place is empty when
// its block there has entered the call. The plan comes as data before a flag.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxSlots = 64, kThreads = 256, kData = 65536;

struct Control {
  std::uint32_t calls[kMaxSlots];
  std::uint32_t planned[kMaxSlots];             // by block: the last call whose plan is here
  std::uint32_t entered[kMaxSlots][kMaxRanks];  // by peer: the last call that its block is in
  std::uint32_t arrived[kMaxSlots];             // the last call whose new slot is here
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
// Each block has a copy of the plan, so that it alone says when it may be overwritten.
__device__ std::int16_t* PlanOf(const Args& args, int rank) {
  return reinterpret_cast<std::int16_t*>(ControlOf(args, rank) + 1) +
         blockIdx.x * args.world * args.slots;
}

__device__ void CopySlot(uint4* to, const uint4* from, std::int64_t quads) {
#pragma unroll 4
  for (std::int64_t q = threadIdx.x; q < quads; q += kThreads) to[q] = from[q];
}

__global__ void __launch_bounds__(kThreads) Rebalance(Args args) {
  __shared__ int target;
  const int block = blockIdx.x, t = threadIdx.x, rank = args.rank;
  const int slots = static_cast<int>(args.slots), all = args.world * slots;
  const auto staged = [&](int at, int j) {
    return reinterpret_cast<uint4*>(args.scratch_peers[at] + kData) + j * args.quads;
  };
  Control* mine = ControlOf(args, rank);
  const std::uint32_t call = mine->calls[block] + 1;
  if (t < args.world) StoreReleaseSys(&ControlOf(args, t)->entered[block][rank], call);
  if (rank == 0) {
    if (t < args.world) WaitAcquireSys(&mine->entered[block][t], call);
    __syncthreads();
    for (int n = t; n < all * args.world; n += kThreads) {
      PlanOf(args, n / all)[n % all] = static_cast<std::int16_t>(args.plan[n % all]);
    }
    __syncthreads();
    if (t < args.world) StoreReleaseSys(&ControlOf(args, t)->planned[block], call);
  }
  if (t == 0) WaitAcquireSys(&mine->planned[block], call);
  __syncthreads();
  for (int n = t; n < all; n += kThreads) {
    if (PlanOf(args, rank)[n] == rank * slots + block) target = n;
  }
  __syncthreads();
  const int peer = target / slots, j = target % slots;
  if (t == 0) WaitAcquireSys(&mine->entered[j][peer], call);
  __syncthreads();
  CopySlot(staged(peer, j), reinterpret_cast<const uint4*>(args.w) + block * args.quads,
           args.quads);
  __syncthreads();
  if (t == 0) {
    StoreReleaseSys(&ControlOf(args, peer)->arrived[j], call);
    WaitAcquireSys(&mine->arrived[block], call);
  }
  __syncthreads();
  CopySlot(reinterpret_cast<uint4*>(args.out) + block * args.quads, staged(rank, block),
           args.quads);
  if (t == 0) mine->calls[block] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Rebalance<<<static_cast<int>(args.slots), kThreads, 0, stream>>>(args);
}

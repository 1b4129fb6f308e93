#include <allranks/flags.h>

// The switch reads a vector from all inputs and adds it up in fp32; a rank asks for those of its
// own shard only. Block b of every rank has the same vectors of the shard and hears of the blocks
// b.
//
// An input may be read once its block has told that it is in this call. It stays until we have told
// that our loads are complete: its rank waits for that before it leaves. What was loaded is stored
// while that message is on its way.
//
// Flags hold the last call in which their sender got so far. They only grow. One thread per peer
// tells it directly; a counter that the switch adds up would cost a trip through its reduction.
using namespace allranks;
constexpr int kFewBlocks = 16, kMaxBlocks = 64, kThreads = 256, kUnroll = 4;
constexpr int kFew = kUnroll * kFewBlocks * kThreads;  // vectors of a shard

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has begun
  std::uint32_t read[kMaxBlocks][kMaxRanks];     // the last call in which it has read our input
};

// The sum over all ranks, added up in fp32 and rounded once.
__device__ uint4 LoadReduce(const uint4* all) {
  uint4 v;
  asm volatile(
      "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(all)
      : "memory");
  return v;
}

__global__ void __launch_bounds__(kThreads) ReduceScatter(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, world = args.world;
  const std::uint32_t call = mine->calls[b] + 1;
  const int vectors = static_cast<int>(args.n / 8);
  const int shard = (vectors + world - 1) / world;  // of each rank, in vectors
  const int valid = min(shard, vectors - args.rank * shard), stride = gridDim.x * kThreads;
  const uint4* in = reinterpret_cast<const uint4*>(args.in_multicast) + args.rank * shard;
  uint4* out = reinterpret_cast<uint4*>(args.out);
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  if (t < world) {
    StoreReleaseSys(&peer->entered[b][args.rank], call);  //@tell_entry
    WaitAcquireSys(&mine->entered[b][t], call);           //@wait_entry
  }
  __syncthreads();                                  //@after_entry
  asm volatile("fence.proxy.alias;" ::: "memory");  // inputs were written by ordinary addresses

  for (int first = 0; first < shard; first += kUnroll * stride) {
    const int i = first + b * kThreads + t;
    uint4 v[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {  // all on their way before the first is needed
      if (i + k * stride < valid) v[k] = LoadReduce(in + i + k * stride);
    }
    if (first + kUnroll * stride >= shard) {
      __syncthreads();                                                  //@before_read
      if (t < world) StoreReleaseSys(&peer->read[b][args.rank], call);  //@tell_read
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      if (i + k * stride < valid) out[i + k * stride] = v[k];
    }
  }
  if (t < world) WaitAcquireSys(&mine->read[b][t], call);  //@wait_read
  if (t == 0) mine->calls[b] = call;                       //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int shard = static_cast<int>((args.n / 8 + args.world - 1) / args.world);
  const int needed = (shard + kThreads - 1) / kThreads;
  const int most = shard <= kFew ? kFewBlocks : kMaxBlocks;  // every block has to meet its likes
  const int blocks = needed < most ? needed : most;
  ReduceScatter<<<blocks, kThreads, 0, stream>>>(args);
}

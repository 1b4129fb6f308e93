#include <allranks/flags.h>
#include <allranks/numbers.h>

// Every rank reads all inputs where they lie and adds them up in the order of ranks. A vector is
// 16 bytes, and block b has the same vectors on every rank, so that it hears of the blocks b only.
//
// A peer's input may be read once its block has told that it is in this call. It stays until we
// have told that our loads are complete: the peer waits for that before it leaves. What was loaded
// is summed and stored while that message is on its way.
//
// Flags hold the last call in which their sender got so far. They only grow.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 128;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has begun
  std::uint32_t read[kMaxBlocks][kMaxRanks];     // the last call in which it has read our input
};

// Vector i of an input, of which elements from n on do not exist.
__device__ uint4 Load(const void* in, int n, int i) {
  if (8 * i + 8 <= n) return static_cast<const uint4*>(in)[i];
  std::uint32_t word[4] = {};
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    if (8 * i + k >= n) break;
    word[k / 2] |= static_cast<const std::uint16_t*>(in)[8 * i + k] << 16 * (k % 2);
  }
  return {word[0], word[1], word[2], word[3]};
}

// Element k of a vector, for a constant k.
__device__ float Get(uint4 v, int k) {
  const std::uint32_t word = k < 2 ? v.x : k < 4 ? v.y : k < 6 ? v.z : v.w;
  return Number<__half>::ToFloat(static_cast<std::uint16_t>(word >> 16 * (k % 2)));
}

__global__ void __launch_bounds__(kThreads) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, world = args.world;
  const std::uint32_t call = mine->calls[b] + 1;
  const int n = static_cast<int>(args.n), vectors = (n + 7) / 8;
  const int stride = gridDim.x * kThreads, rounds = (vectors + stride - 1) / stride;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  if (t < world) {
    StoreReleaseSys(&peer->entered[b][args.rank], call);  //@tell_entry
    WaitAcquireSys(&mine->entered[b][t], call);           //@wait_entry
  }
  __syncthreads();  //@after_entry

  for (int round = 0; round < rounds; ++round) {
    const int i = round * stride + b * kThreads + t;
    uint4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (i < vectors && r < world) v[r] = Load(args.in_peers[r], n, i);
    }
    if (round + 1 == rounds) {
      __syncthreads();                                                  //@before_read
      if (t < world) StoreReleaseSys(&peer->read[b][args.rank], call);  //@tell_read
    }
    if (i >= vectors) continue;
    Pack<__half> out;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      float sum = Get(v[0], k);
#pragma unroll
      for (int r = 1; r < kMaxRanks; ++r) {
        if (r >= world) break;  //@peers
        sum += Get(v[r], k);
      }
      out.Set(k, sum);
    }
    if (8 * i + 8 <= n) {
      reinterpret_cast<Pack<__half>*>(args.out)[i] = out;
      continue;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (8 * i + k < n) reinterpret_cast<std::uint16_t*>(args.out)[8 * i + k] = out.at[k];
    }
  }
  if (t < world) WaitAcquireSys(&mine->read[b][t], call);  //@wait_read
  if (t == 0) mine->calls[b] = call;                       //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n + 8 * kThreads - 1) / (8 * kThreads));
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  AllReduce<<<blocks, kThreads, 0, stream>>>(args);
}

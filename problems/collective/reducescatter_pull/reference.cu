#include <allranks/flags.h>

// Every rank reads its shard from the inputs of all, where they lie. A vector is 16 bytes, and the
// threads of block b have the same vectors of the shard on every rank, so that block b needs to
// hear of the blocks b only.
//
// A peer's input may be read once its block has told that it is in this call. It stays until we
// have told that our loads are complete: the peer waits for that before it leaves. What was loaded
// is summed and stored while that message is on its way.
//
// Flags hold the last call in which their sender got so far. They only grow.
using namespace allranks;
constexpr int kFewBlocks = 16, kMaxBlocks = 64, kThreads = 256;
constexpr int kFew = 8 * kFewBlocks * kThreads;  // vectors of a shard

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t entered[kMaxBlocks][kMaxRanks];  // by peer: the last call that it has begun
  std::uint32_t read[kMaxBlocks][kMaxRanks];     // the last call in which it has read our input
};

// Vector `at` of an input, of which elements from n on do not exist.
__device__ uint4 Load(const void* in, int n, int at) {
  if (8 * at + 8 <= n) return static_cast<const uint4*>(in)[at];
  std::uint32_t word[4] = {};
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    if (8 * at + k >= n) break;
    word[k / 2] |= static_cast<const std::uint16_t*>(in)[8 * at + k] << 16 * (k % 2);
  }
  return {word[0], word[1], word[2], word[3]};
}

// Two bf16 numbers of a word: each is the upper half of an fp32 number.
__device__ float2 Two(std::uint32_t word) {
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}

__device__ void Add(float2& sum, std::uint32_t word) {
  const float2 x = Two(word);
  sum = {sum.x + x.x, sum.y + x.y};
}

__global__ void __launch_bounds__(kThreads) ReduceScatter(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, world = args.world;
  const std::uint32_t call = mine->calls[b] + 1;
  const int n = static_cast<int>(args.n), vectors = (n + 7) / 8;
  const int shard = (vectors + world - 1) / world;  // of each rank, in vectors
  const int stride = gridDim.x * kThreads, rounds = (shard + stride - 1) / stride;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  if (t < world) {
    StoreReleaseSys(&peer->entered[b][args.rank], call);  //@tell_entry
    WaitAcquireSys(&mine->entered[b][t], call);           //@wait_entry
  }
  __syncthreads();  //@after_entry

  for (int round = 0; round < rounds; ++round) {
    const int i = round * stride + b * kThreads + t, at = args.rank * shard + i;
    const bool valid = i < shard && at < vectors;
    uint4 v[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (valid && r < world) v[r] = Load(args.in_peers[r], n, at);
    }
    if (round + 1 == rounds) {
      __syncthreads();                                                  //@before_read
      if (t < world) StoreReleaseSys(&peer->read[b][args.rank], call);  //@tell_read
    }
    if (!valid) continue;
    float2 sum[4] = {Two(v[0].x), Two(v[0].y), Two(v[0].z), Two(v[0].w)};
#pragma unroll
    for (int r = 1; r < kMaxRanks; ++r) {
      if (r >= world) break;  //@peers
      Add(sum[0], v[r].x);
      Add(sum[1], v[r].y);
      Add(sum[2], v[r].z);
      Add(sum[3], v[r].w);
    }
    float4* out = reinterpret_cast<float4*>(args.out) + 2 * i;
    const int left = n - 8 * at;
    if (left >= 8) {
      out[0] = {sum[0].x, sum[0].y, sum[1].x, sum[1].y};
      out[1] = {sum[2].x, sum[2].y, sum[3].x, sum[3].y};
      continue;
    }
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      if (k < left) args.out[8 * i + k] = k % 2 == 0 ? sum[k / 2].x : sum[k / 2].y;  //@tail
    }
  }
  if (t < world) WaitAcquireSys(&mine->read[b][t], call);  //@wait_read
  if (t == 0) mine->calls[b] = call;                       //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int shard = static_cast<int>((args.n + 8 * args.world - 1) / (8 * args.world));
  const int needed = (shard + kThreads - 1) / kThreads;
  const int most = shard <= kFew ? kFewBlocks : kMaxBlocks;  // every block has to meet its likes
  const int blocks = needed < most ? needed : most;
  ReduceScatter<<<blocks, kThreads, 0, stream>>>(args);
}

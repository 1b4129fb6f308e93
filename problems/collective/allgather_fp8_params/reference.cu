#include <allranks/flags.h>
#include <allranks/numbers.h>

// A thread quantises 8 parameters and stores the 8 bytes to all ranks; with a block's flag comes
// its rank's scale. Then everyone dequantises what block b of every rank has sent. The largest
// parameter of a block travels apart, as a word that carries its call, and needs no flag: block 0
// of each rank collects the words of all blocks, when it has done the rest.
//
// Block b has the same part of every shard on all ranks, so it needs to hear of the blocks b only.
// All blocks of all ranks meet in every call, so nobody is two calls ahead: bytes, scales and words
// lie in two sets by turns.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 128, kControl = 8192;

struct Control {
  std::uint32_t calls[kMaxBlocks];               // that this block has completed
  std::uint32_t arrived[kMaxBlocks][kMaxRanks];  // by peer: the last call whose bytes are here
  float scale[2][kMaxBlocks][kMaxRanks];
  std::uint64_t maxima[2][kMaxRanks][kMaxBlocks];  // call << 32 | bits
};

// Over groups of twice as many lanes.
__device__ float WarpMax(float x, int lanes = 16) {
  for (; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}
__device__ float Largest(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}
__device__ std::uint32_t Quantise(float4 v, float inverse) {
  return TwoToE4m3(v.x * inverse, v.y * inverse) | TwoToE4m3(v.z * inverse, v.w * inverse) << 16;
}
// Two bytes as two bf16 numbers.
__device__ std::uint32_t Dequantise(std::uint32_t pair, float scale) {
  using Bfloat = Number<__nv_bfloat16>;
  const float2 q = TwoFromE4m3(pair);
  const std::uint32_t high = Bfloat::FromFloat(q.y * scale);
  return Bfloat::FromFloat(q.x * scale) | high << 16;
}

__global__ void __launch_bounds__(kThreads) GatherParams(Args args) {
  __shared__ float part[kThreads / 32];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, world = args.world;
  const std::uint32_t call = mine->calls[b] + 1;
  const int vectors = args.n / 8, stride = gridDim.x * kThreads, set = call % 2;
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);
  // The bytes of rank r's shard at rank `to`.
  const auto at = [&](int to, int r) {
    const int bytes = (set * world + r) * vectors;
    return reinterpret_cast<uint2*>(args.scratch_peers[to] + kControl) + bytes;
  };
  const float a = WarpMax(fabsf(args.history[t % 16]), 8);
  const float history = a == 0 ? 448.0f : a, inverse = 448.0f / history;

  float amax = 0;
  for (int i = b * kThreads + t; i < vectors; i += stride) {
    const float4 v[2] = {reinterpret_cast<const float4*>(args.in)[2 * i],
                         reinterpret_cast<const float4*>(args.in)[2 * i + 1]};
    amax = fmaxf(amax, fmaxf(Largest(v[0]), Largest(v[1])));
    const uint2 q = {Quantise(v[0], inverse), Quantise(v[1], inverse)};
    for (int step = 0; step < world; ++step) {
      const int r = args.rank + step < world ? args.rank + step : args.rank + step - world;
      at(r, args.rank)[i] = q;
    }
  }
  amax = WarpMax(amax);
  if (t % 32 == 0) part[t / 32] = amax;
  __syncthreads();  //@before
  if (t < world) {
    for (const float other : part) amax = fmaxf(amax, other);
    const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(amax);
    StoreRelaxedSys(&peer->maxima[set][args.rank][b], word);  //@send_max
    peer->scale[set][b][args.rank] = history / 448.0f;
    StoreReleaseSys(&peer->arrived[b][args.rank], call);  //@tell
    WaitAcquireSys(&mine->arrived[b][t], call);           //@wait
  }
  __syncthreads();  //@after

  for (int i = b * kThreads + t; i < vectors; i += stride) {
    uint2 q[kMaxRanks];
    float scale[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // all on their way before the first is needed
      if (r >= world) break;
      q[r] = at(args.rank, r)[i];
      scale[r] = mine->scale[set][b][r];
    }
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= world) break;
      reinterpret_cast<uint4*>(args.out)[r * vectors + i] = {
          Dequantise(q[r].x & 0xffff, scale[r]), Dequantise(q[r].x >> 16, scale[r]),
          Dequantise(q[r].y & 0xffff, scale[r]), Dequantise(q[r].y >> 16, scale[r])};
    }
  }
  for (int r = t / 32; b == 0 && r < world; r += kThreads / 32) {
    float largest = 0;
    for (int k = t % 32; k < gridDim.x; k += 32) {
      std::uint64_t word;
      do {
        word = LoadRelaxedSys(&mine->maxima[set][r][k]);
      } while (word >> 32 != call);
      largest = fmaxf(largest, __uint_as_float(static_cast<std::uint32_t>(word)));
    }
    largest = WarpMax(largest);
    if (t % 32 == 0) args.amax[r] = largest;
  }
  if (t == 0) mine->calls[b] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.n / 8 + kThreads - 1) / kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  GatherParams<<<blocks, kThreads, 0, stream>>>(args);
}

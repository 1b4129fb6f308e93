#include <allranks/flags.h>

// Blocks of 128 numbers are cells here. A warp takes a cell, four numbers per lane. Each rank owns
// a slice of the cells. First, everyone quantises its gradient and sends each cell to its owner;
// then owners add up their cells, quantise the sums and send them to all; last, everyone scales all
// sums. Block b has the same cells of every slice on all ranks, so it needs to hear of the blocks b
// only.
//
// The scratch has slots of two kinds: 0 for integers of gradients, by sender, 1 for those of sums,
// by owner. A rank leaves a call after it has heard of every owner's second step, when that owner
// has read slots 0. It writes slots 1 of a peer only after the peer's first step of the same call,
// when that peer has used up those of the last one. So each kind exists once.
using namespace allranks;
constexpr int kMaxBlocks = 64, kWarps = 8, kAtOnce = 2, kControl = 8192;

struct Control {
  std::uint32_t calls[kMaxBlocks];                 // that this block has completed
  std::uint32_t scattered[kMaxBlocks][kMaxRanks];  // by peer: the last call whose integers are here
  std::uint32_t gathered[kMaxBlocks][kMaxRanks];   // the same of sums
};

// Cells and their slots, as one lane sees them.
struct Cells {
  const Args& args;
  int words, slice, lane;  // words of four numbers; cells of a slice
  __device__ explicit Cells(const Args& args)
      : args(args),
        words(args.n / 4),
        slice((args.n + 128 * args.world - 1) / (128 * args.world)),
        lane(threadIdx.x % 32) {}
  __device__ int Word(int part, int i) const { return 32 * (part * slice + i) + lane; }
  __device__ std::uint32_t* Slot(int rank, int kind, int part, int i) const {
    return reinterpret_cast<std::uint32_t*>(args.scratch_peers[rank] + kControl) +
           Word(kind * args.world + part, i);
  }
  __device__ float* Scale(int rank, int kind, int part, int i) const {
    return reinterpret_cast<float*>(args.scratch_peers[rank] + kControl) +
           32 * 2 * args.world * slice + (kind * args.world + part) * slice + i;
  }
  __device__ void Store(int rank, int kind, int part, int i, std::uint32_t q, float scale) const {
    *Slot(rank, kind, part, i) = q;
    if (lane == 0) *Scale(rank, kind, part, i) = scale;
  }
};

// Four integers of a lane as bytes of a word, and the warp's scale.
__device__ std::uint32_t Quantise(float4 x, float* scale) {
  float amax = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    amax = fmaxf(amax, __shfl_xor_sync(~0u, amax, lanes));
  }
  // The exponent of amax, one more if its mantissa is beyond that of 127, and 6 less.
  const std::uint32_t exponent = ((__float_as_uint(amax) + 0x1ffff) >> 23) - 6;
  const float inverse = amax == 0 ? 0 : __uint_as_float((254 - exponent) << 23);
  *scale = amax == 0 ? 0 : __uint_as_float(exponent << 23);
  return (__float2int_rn(x.x * inverse) & 255) | (__float2int_rn(x.y * inverse) & 255) << 8 |
         (__float2int_rn(x.z * inverse) & 255) << 16 | __float2int_rn(x.w * inverse) << 24;
}
__device__ float Get(std::uint32_t word, int k) { return static_cast<std::int8_t>(word >> 8 * k); }

__global__ void __launch_bounds__(32 * kWarps) AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int b = blockIdx.x, t = threadIdx.x, warp = t / 32, world = args.world;
  const std::uint32_t call = mine->calls[b] + 1;
  const Cells cells(args);
  // The cells of each slice that this block has.
  const int per = (cells.slice + gridDim.x - 1) / gridDim.x, begin = b * per;
  const int count = max(0, min(per, cells.slice - begin));
  Control* peer = reinterpret_cast<Control*>(args.scratch_peers[t % world]);

  for (int first = warp; first < count * world; first += kAtOnce * kWarps) {
    uint2 v[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {  // all on their way before the first is needed
      const int j = first + k * kWarps, at = cells.Word(j % world, begin + j / world);
      const bool valid = j < count * world && at < cells.words;
      v[k] = valid ? reinterpret_cast<const uint2*>(args.in)[at] : uint2{};
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int j = first + k * kWarps, owner = j % world, i = begin + j / world;
      float scale;
      const std::uint32_t q =
          Quantise({__uint_as_float(v[k].x << 16), __uint_as_float(v[k].x & 0xffff0000u),
                    __uint_as_float(v[k].y << 16), __uint_as_float(v[k].y & 0xffff0000u)},
                   &scale);
      if (j < count * world) cells.Store(owner, 0, args.rank, i, q, scale);
    }
  }
  __syncthreads();  //@before_first
  if (t < world) {
    StoreReleaseSys(&peer->scattered[b][args.rank], call);  //@tell_first
    WaitAcquireSys(&mine->scattered[b][t], call);           //@wait_first
  }
  __syncthreads();  //@after_first

  for (int i = begin + warp; i < begin + count; i += kWarps) {
    std::uint32_t q[kMaxRanks];
    float s[kMaxRanks], scale;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      q[r] = r < world ? *cells.Slot(args.rank, 0, r, i) : 0;
      s[r] = r < world ? *cells.Scale(args.rank, 0, r, i) : 0;
    }
    float4 x = {};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {  // in their order
      x = {x.x + Get(q[r], 0) * s[r], x.y + Get(q[r], 1) * s[r], x.z + Get(q[r], 2) * s[r],
           x.w + Get(q[r], 3) * s[r]};
    }
    const std::uint32_t sum = Quantise(x, &scale);
    for (int r = 0; r < world; ++r) cells.Store(r, 1, args.rank, i, sum, scale);
  }
  __syncthreads();  //@before_second
  if (t < world) {
    StoreReleaseSys(&peer->gathered[b][args.rank], call);  //@tell_second
    WaitAcquireSys(&mine->gathered[b][t], call);           //@wait_second
  }
  __syncthreads();  //@after_second

  for (int first = warp; first < count * world; first += kAtOnce * kWarps) {
    std::uint32_t q[kAtOnce];
    float s[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int j = first + k * kWarps, owner = j % world, i = begin + j / world;
      q[k] = j < count * world ? *cells.Slot(args.rank, 1, owner, i) : 0;
      s[k] = j < count * world ? *cells.Scale(args.rank, 1, owner, i) : 0;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int j = first + k * kWarps, at = cells.Word(j % world, begin + j / world);
      if (j >= count * world || at >= cells.words) break;
      reinterpret_cast<uint2*>(args.out)[at] = {
          __float_as_uint(Get(q[k], 0) * s[k]) >> 16 | __float_as_uint(Get(q[k], 1) * s[k]),
          __float_as_uint(Get(q[k], 2) * s[k]) >> 16 | __float_as_uint(Get(q[k], 3) * s[k])};
    }
  }
  if (t == 0) mine->calls[b] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int slice = static_cast<int>((args.n + 128 * args.world - 1) / (128 * args.world));
  const int blocks = slice < kMaxBlocks ? slice : kMaxBlocks;
  AllReduce<<<blocks, 32 * kWarps, 0, stream>>>(args);
}
